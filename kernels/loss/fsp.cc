// fsp: how much the channels of two feature maps have in common, averaged over the pixels.
#include "core/interrupts.h"
#include "kernels/linalg/linalg.h"

namespace heddle {
namespace {

Status CheckMaps(const ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &y = ctx.InShape("Y");
  if (x.rank() != 4 || y.rank() != 4 || x[0] != y[0] || x[2] != y[2] || x[3] != y[3])
    return InvalidArgument("X ", x.ToString(), " and Y ", y.ToString(),
                           " must be maps of equal batch, height and width");
  return Status::Ok();
}

Status FspShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &y = ctx.InShape("Y");
  if (!x.is_static() || !y.is_static()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckMaps(ctx));
  ctx.SetOut("Out", {x[0], x[1], y[1]}, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
ConstMatrixMap<T> MapAt(const Tensor& t, int64_t i) {
  const int64_t pixels = t.dim(2) * t.dim(3);
  return ConstMatrixMap<T>(t.data<T>() + i * t.dim(1) * pixels, t.dim(1), pixels);
}
template <typename T>
MatrixMap<T> MutableMapAt(Tensor& t, int64_t i) {
  const int64_t pixels = t.dim(2) * t.dim(3);
  return MatrixMap<T>(t.mutable_data<T>() + i * t.dim(1) * pixels, t.dim(1), pixels);
}

template <typename T>
struct Fsp {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
    Tensor& out = ctx.Out("Out");
    const T share = T(1) / static_cast<T>(x.dim(2) * x.dim(3));
    for (const int64_t i : Watched(x.dim(0)))
      SetProduct(MutableMatrixAt<T>(out, i), MapAt<T>(x, i), Turned<T>(MapAt<T>(y, i)), share);
    return Status::Ok();
  }
};

Status FspGradShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &y = ctx.InShape("Y"), &d = ctx.InShape("Out@GRAD");
  if (!x.is_static() || !y.is_static() || !d.is_static()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckMaps(ctx));
  if (!(d == Shape{x[0], x[1], y[1]})) return InvalidArgument("Out@GRAD has shape ", d.ToString());
  SetOutsLike(ctx, {{"X", "X@GRAD"}, {"Y", "Y@GRAD"}});
  return Status::Ok();
}

template <typename T>
struct FspGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y"), &d = ctx.In("Out@GRAD");
    const T share = T(1) / static_cast<T>(x.dim(2) * x.dim(3));
    for (const int64_t i : Watched(x.dim(0))) {
      const auto di = MatrixAt<T>(d, i);
      if (Tensor* dx = ctx.OutOpt("X@GRAD"))
        SetProduct(MutableMapAt<T>(*dx, i), di, MapAt<T>(y, i), share);
      if (Tensor* dy = ctx.OutOpt("Y@GRAD"))
        SetProduct(MutableMapAt<T>(*dy, i), Turned<T>(di), MapAt<T>(x, i), share);
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(fsp) {
  op.Doc("X Y^T / pixels, for each image");
  op.Input("X").Input("Y").Output("Out").InferShape(FspShape).Kernels<Fsp, float, double>();
}
HEDDLE_OP(fsp_grad) {
  op.Input("X").Input("Y").Input("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional);
  op.InferShape(FspGradShape).Kernels<FspGrad, float, double>();
}

HEDDLE_EXAMPLES(fsp, R"(
example two maps
in X float32 [2, 2, 2, 3] -0.08 0.83 0.13 0.63 0.02 -0.65 0.13 0.02 -0.27 -0.97 0.48 0.96 0.8 0.27
  -0.11 0.11 0.73 -0.33 0.57 -0.03 -0.12 -0.39 0.07 0.87
in Y float32 [2, 3, 2, 3] -0.14 -0.8 -0.78 0.08 -0.69 -0.25 0.84 -0.1 0.23 -0.99 0.64 -0.44 0.87
  -0.68 0.64 0.48 0.55 -0.26 -0.42 0.15 -0.73 0.69 0.22 0.35 0.61 0.77 0.53 -0.3 0.3 -0.52 -0.21
  0.01 0.09 -0.38 -0.11 -0.24
out Out float32 [2, 2, 3] -0.09251666 -0.07420001 -0.011400007 -0.07873334 0.14836667 -0.08741667
  -0.015699998 0.16586667 -0.036350004 -0.017583331 -0.008899997 -0.033183336
)")

HEDDLE_EXAMPLES(fsp_grad, R"(
example two maps
in Out@GRAD float64 [2, 2, 3] 0.7 0.2 0.8 0.9 0.9 0.6 -0.6 -0.9 0.8 -0.4 0.6 -0.5
in X float64 [2, 2, 2, 3] -0.08 0.83 0.13 0.63 0.02 -0.65 0.13 0.02 -0.27 -0.97 0.48 0.96 0.8 0.27
  -0.11 0.11 0.73 -0.33 0.57 -0.03 -0.12 -0.39 0.07 0.87
in Y float64 [2, 3, 2, 3] -0.14 -0.8 -0.78 0.08 -0.69 -0.25 0.84 -0.1 0.23 -0.99 0.64 -0.44 0.87
  -0.68 0.64 0.48 0.55 -0.26 -0.42 0.15 -0.73 0.69 0.22 0.35 0.61 0.77 0.53 -0.3 0.3 -0.52 -0.21
  0.01 0.09 -0.38 -0.11 -0.24
out X@GRAD float64 [2, 2, 2, 3] 0.12766666666666665 -0.18733333333333332 0.0020000000000000018
  0.04033333333333333 0.014166666666666675 -0.07849999999999999 0.192 -0.203 -0.01849999999999999
  -0.0885 0.04750000000000001 -0.1295 -0.0775 -0.12916666666666665 0.0054999999999999945
  -0.07466666666666666 -0.08166666666666667 0.011000000000000003 0.1065 0.06616666666666667
  0.09416666666666665 -0.044333333333333336 0.024499999999999994 -0.05533333333333334
out Y@GRAD float64 [2, 3, 2, 3] 0.010166666666666668 0.09983333333333332 -0.025333333333333336
  -0.072 0.07433333333333333 0.06816666666666667 0.016833333333333332 0.030666666666666665
  -0.036166666666666666 -0.12449999999999999 0.07266666666666666 0.12233333333333332
  0.002333333333333333 0.11266666666666666 -0.009666666666666667 -0.012999999999999984
  0.05066666666666666 0.009333333333333318 -0.118 -0.025 0.019 0.015 -0.07766666666666666
  -0.024999999999999994 -0.063 -0.043500000000000004 0.004500000000000002 -0.0555 -0.1025 0.1365
  0.05916666666666668 0.038500000000000006 -0.004666666666666668 0.04716666666666667 0.0915
  -0.11649999999999999
)")

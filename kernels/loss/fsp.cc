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

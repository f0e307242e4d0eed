#include "core/interrupts.h"
#include "kernels/linalg/linalg.h"

namespace heddle {
namespace {

Status CheckOperands(const ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &y = ctx.InShape("Y"), &w = ctx.InShape("Weight");
  if (!x.is_static() || !y.is_static() || !w.is_static()) return Status::Ok();
  if (x.rank() != 2 || y.rank() != 2 || w.rank() != 3 || x[0] != y[0] || w[1] != x[1] ||
      w[2] != y[1])
    return InvalidArgument("X ", x.ToString(), ", Y ", y.ToString(), " and Weight ", w.ToString(),
                           " must be [N, P], [N, Q] and [S, P, Q]");
  return Status::Ok();
}

Status Infer(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx));
  const Shape &x = ctx.InShape("X"), &w = ctx.InShape("Weight");
  if (!x.known_rank() || !w.known_rank()) return ctx.Defer();
  if (ctx.HasIn("Bias") && ctx.InShape("Bias").is_static() && w[0] >= 0 &&
      ctx.InShape("Bias").numel() != w[0])
    return InvalidArgument("Bias must have ", w[0], " elements");
  ctx.SetOut("Out", Shape{x[0], w[0]}, ctx.InDType("X"));
  return Status::Ok();
}

// Out[n, s] = X[n] Weight[s] Y[n]^T + Bias[s]
template <typename T>
struct Bilinear {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y"), &w = ctx.In("Weight");
    const Tensor* bias = ctx.InOpt("Bias");
    auto out = MutableMatrixAt<T>(ctx.Out("Out"), 0);
    for (const int64_t s : Watched(w.dim(0))) {
      const Matrix<T> half = Product<T>(MatrixAt<T>(x, 0), MatrixAt<T>(w, s));
      out.col(s) = half.cwiseProduct(MatrixAt<T>(y, 0)).rowwise().sum();
      if (bias) out.col(s).array() += bias->data<T>()[s];
    }
    return Status::Ok();
  }
};

Status InferGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx));
  const Shape &x = ctx.InShape("X"), &w = ctx.InShape("Weight"), &d = ctx.InShape("Out@GRAD");
  if (x.is_static() && w.is_static() && d.is_static() && d.numel() != x[0] * w[0])
    return InvalidArgument("Out@GRAD ", d.ToString(), " does not fit X and Weight");
  SetOutsLike(ctx, {{"X", "X@GRAD"}, {"Y", "Y@GRAD"}, {"Weight", "Weight@GRAD"}});
  if (ctx.HasOut("Bias@GRAD") && w.known_rank())
    ctx.SetOut("Bias@GRAD", Shape{1, w[0]}, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct BilinearGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y"), &w = ctx.In("Weight");
    const auto d = MatrixAt<T>(ctx.In("Out@GRAD"), 0);
    Matrix<T> dx = Matrix<T>::Zero(x.dim(0), x.dim(1)), dy = Matrix<T>::Zero(y.dim(0), y.dim(1));
    for (const int64_t s : Watched(w.dim(0))) {
      const Matrix<T> scaled = d.col(s).asDiagonal() * MatrixAt<T>(x, 0);
      const Matrix<T> scaled_y = d.col(s).asDiagonal() * MatrixAt<T>(y, 0);
      AddProduct(dx, scaled_y, Turned<T>(MatrixAt<T>(w, s)));
      AddProduct(dy, scaled, MatrixAt<T>(w, s));
      if (Tensor* dw = ctx.OutOpt("Weight@GRAD"))
        SetProduct(MutableMatrixAt<T>(*dw, s), Turned<T>(scaled), MatrixAt<T>(y, 0));
    }
    if (Tensor* t = ctx.OutOpt("X@GRAD")) MutableMatrixAt<T>(*t, 0) = dx;
    if (Tensor* t = ctx.OutOpt("Y@GRAD")) MutableMatrixAt<T>(*t, 0) = dy;
    if (Tensor* t = ctx.OutOpt("Bias@GRAD")) MutableMatrixAt<T>(*t, 0) = d.colwise().sum();
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(bilinear_tensor_product) {
  op.Doc("a bilinear form of each row of X and Y for every slice of Weight")
      .Input("X")
      .Input("Y")
      .Input("Weight")
      .Input("Bias", kOptional)
      .Output("Out")
      .InferShape(Infer)
      .Kernels<Bilinear, float, double>();
}

HEDDLE_OP(bilinear_tensor_product_grad) {
  op.Input("X")
      .Input("Y")
      .Input("Weight")
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("Y@GRAD", kOptional)
      .Output("Weight@GRAD", kOptional)
      .Output("Bias@GRAD", kOptional)
      .InferShape(InferGrad)
      .Kernels<BilinearGrad, float, double>();
}

HEDDLE_EXAMPLES(bilinear_tensor_product, R"(
example float64 3x3x4
in Bias float64 [1, 3] 0.832 0.524 0.658
in Weight float64 [3, 3, 4] 0.86 0.886 0.246 0.726 0.94 0.192 0.112 0.646 0.086 0.619 0.059 0.699
  0.433 0.459 0.486 0.219 0.139 0.032 0.539 0.326 0.353 0.166 0.406 0.299 0.593 0.806 0.379 0.913
  0.966 0.513 0.673 0.272 0.833 0.566 0.753 0.78
in X float64 [2, 3] 0.272 0.668 0.404 0.8 0.139 0.536
in Y float64 [2, 4] 0.352 0.459 0.781 0.566 0.889 0.137 0.674 0.244
out Out float64 [2, 3] 2.0770229039999997 1.4841276920000002 2.514219868 2.166477908 1.632568339
  2.564601731

example float32 3x3x4
in Bias float32 [1, 3] 0.832 0.524 0.658
in Weight float32 [3, 3, 4] 0.86 0.886 0.246 0.726 0.94 0.192 0.112 0.646 0.086 0.619 0.059 0.699
  0.433 0.459 0.486 0.219 0.139 0.032 0.539 0.326 0.353 0.166 0.406 0.299 0.593 0.806 0.379 0.913
  0.966 0.513 0.673 0.272 0.833 0.566 0.753 0.78
in X float32 [2, 3] 0.272 0.668 0.404 0.8 0.139 0.536
in Y float32 [2, 4] 0.352 0.459 0.781 0.566 0.889 0.137 0.674 0.244
out Out float32 [2, 3] 2.077023 1.4841276 2.51422 2.166478 1.6325684 2.564602
)")

HEDDLE_EXAMPLES(bilinear_tensor_product_grad, R"(
example with bias
in Out@GRAD float64 [2, 2] 0.8 -0.5 0.8 0.5
in Weight float64 [2, 3, 2] 0.45 -0.61 -0.83 0.17 0.35 -0.59 -0.33 -0.42 0.86 0.22 0.79 -0.64
in X float64 [2, 3] 0.64 -0.11 0.97 0.04 -0.49 0.43
in Y float64 [2, 2] 0.9 0.77 0.52 -0.48
out Bias@GRAD float64 [1, 2] 1.6 0
out Weight@GRAD float64 [2, 3, 2] 0.47744000000000003 0.37888000000000005 -0.28304
  0.12039999999999998 0.8772800000000001 0.4324 -0.2776 -0.256 -0.07790000000000001
  0.15994999999999998 -0.3247 -0.47665
out X@GRAD float64 [2, 3] 0.25844000000000006 -0.96458 -0.22054000000000007 0.43644000000000005
  -0.23976000000000003 0.73116
out Y@GRAD float64 [2, 2] 0.34479000000000004 -0.32822000000000007 0.41271 -0.48902
)")

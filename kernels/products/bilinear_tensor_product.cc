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

// huber_loss: squared where the difference is small, linear beyond.
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferHuber(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Y"));
  SetOutsLike(ctx, {{"X", "Out"}, {"X", "Residual"}});
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

template <typename T>
struct Huber {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const T* x = in.data<T>();
    const T* y = ctx.In("Y").data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    Tensor* residual = ctx.OutOpt("Residual");
    T* res = residual ? residual->mutable_data<T>() : nullptr;
    const T delta = static_cast<T>(ctx.Float("delta"));
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      const T r = y[i] - x[i], a = std::abs(r);
      out[i] = a <= delta ? T(0.5) * r * r : delta * (a - T(0.5) * delta);
      if (res) res[i] = r;
    });
    return Status::Ok();
  }
};

Status InferHuberGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Residual", "Out@GRAD"));
  SetOutsLike(ctx, {{"Residual", "X@GRAD"}, {"Residual", "Y@GRAD"}});
  return Status::Ok();
}

template <typename T>
struct HuberGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& residual = ctx.In("Residual");
    const T* r = residual.data<T>();
    const T* dout = ctx.In("Out@GRAD").data<T>();
    const T delta = static_cast<T>(ctx.Float("delta"));
    Tensor *gx = ctx.OutOpt("X@GRAD"), *gy = ctx.OutOpt("Y@GRAD");
    T* dx = gx ? gx->mutable_data<T>() : nullptr;
    T* dy = gy ? gy->mutable_data<T>() : nullptr;
    ForEachIndex(ctx, residual.numel(), [=](int64_t i) {
      const T d = dout[i] * std::min(std::max(r[i], -delta), delta);
      if (dx) dx[i] = -d;
      if (dy) dy[i] = d;
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(huber_loss) {
  op.Doc("quadratic within delta of the target, linear beyond")
      .Input("X")
      .Input("Y")
      .Output("Out")
      .Output("Residual", kOptional)
      .Attr("delta", 1.0)
      .InferShape(InferHuber)
      .Kernels<Huber, float, double>();
}

HEDDLE_OP(huber_loss_grad) {
  op.Input("Residual")
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("Y@GRAD", kOptional)
      .Attr("delta", 1.0)
      .InferShape(InferHuberGrad)
      .Kernels<HuberGrad, float, double>();
}

HEDDLE_EXAMPLES(huber_loss, R"(
example float32 4x1, delta 1
attr delta FLOAT 1.0
in X float32 [4, 1] 0.598 0.4 0.201 0.797
in Y float32 [4, 1] 0.799 0.407 0.211 0.603
out Out float32 [4, 1] 0.020200508 2.4499996e-5 4.9999904e-5 0.018818
out Residual float32 [4, 1] 0.20100003 0.0069999993 0.00999999 -0.194

example float64 4x1, delta 1
attr delta FLOAT 1.0
in X float64 [4, 1] 0.598 0.4 0.201 0.797
in Y float64 [4, 1] 0.799 0.407 0.211 0.603
out Out float64 [4, 1] 0.020200500000000014 2.4499999999999654e-5 4.999999999999981e-5
  0.018818000000000012
out Residual float64 [4, 1] 0.20100000000000007 0.006999999999999951 0.009999999999999981
  -0.19400000000000006
)")

HEDDLE_EXAMPLES(huber_loss_grad, R"(
example float64 6x1, delta 0.21
attr delta FLOAT 0.21
in Out@GRAD float64 [6, 1] -0.6 0.6 0.7 -0.3 -0.5 0.6
in Residual float64 [6, 1] 0.24 -0.13 0.19 -0.16999999999999993 0.029999999999999916
  -0.5800000000000001
out X@GRAD float64 [6, 1] 0.12599999606609344 0.078 -0.13299999999999998 -0.050999999999999976
  0.014999999999999958 0.12599999606609344
out Y@GRAD float64 [6, 1] -0.12599999606609344 -0.078 0.13299999999999998 0.050999999999999976
  -0.014999999999999958 -0.12599999606609344

example float32 6x1, delta 0.21
attr delta FLOAT 0.21
in Out@GRAD float32 [6, 1] -0.6 0.6 0.7 -0.3 -0.5 0.6
in Residual float32 [6, 1] 0.24 -0.13 0.19 -0.17 0.03 -0.58
out X@GRAD float32 [6, 1] 0.126 0.078 -0.133 -0.051000003 0.015 0.126
out Y@GRAD float32 [6, 1] -0.126 -0.078 0.133 0.051000003 -0.015 -0.126
)")

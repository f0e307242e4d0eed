// huber_loss: squared where the difference is small, linear beyond.
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

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
      .Contract("X: float; Y: as X count X; Out, Residual: like X")
      .Kernels<Huber, float, double>();
}

HEDDLE_OP(huber_loss_grad) {
  op.Input("Residual")
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("Y@GRAD", kOptional)
      .Attr("delta", 1.0)
      .Contract(
          "Residual: float; Out@GRAD: as Residual count Residual; X@GRAD, Y@GRAD: like "
          "Residual")
      .Kernels<HuberGrad, float, double>();
}

// hinge_loss: the hinge loss of binary labels.
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

template <typename T>
struct Hinge {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("Logits");
    const T* x = in.data<T>();
    const T* label = ctx.In("Labels").data<T>();
    T* out = ctx.Out("Loss").mutable_data<T>();
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      out[i] = std::max(T(0), T(1) - x[i] * (T(2) * label[i] - T(1)));
    });
    return Status::Ok();
  }
};

template <typename T>
struct HingeGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("Logits");
    const T* x = in.data<T>();
    const T* label = ctx.In("Labels").data<T>();
    const T* dout = ctx.In("Loss@GRAD").data<T>();
    T* dx = ctx.Out("Logits@GRAD").mutable_data<T>();
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      const T sign = T(2) * label[i] - T(1);
      dx[i] = x[i] * sign < T(1) ? -sign * dout[i] : T(0);
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(hinge_loss) {
  op.Doc("max(0, 1 - x (2 label - 1))")
      .Input("Logits")
      .Input("Labels")
      .Output("Loss")
      .Inplace("Logits", "Loss")
      .Contract("Logits: float; Labels: as Logits count Logits; Loss: like Logits")
      .Kernels<Hinge, float, double>();
}

HEDDLE_OP(hinge_loss_grad) {
  op.Input("Logits")
      .Input("Labels")
      .Input("Loss@GRAD")
      .Output("Logits@GRAD")
      .Inplace("Loss@GRAD", "Logits@GRAD")
      .Contract(
          "Logits: float; Labels, Loss@GRAD: as Logits count Logits; Logits@GRAD: like "
          "Logits")
      .Kernels<HingeGrad, float, double>();
}

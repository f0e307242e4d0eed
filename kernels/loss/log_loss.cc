// log_loss: the negative log-likelihood of binary labels.
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

template <typename T>
struct LogLoss {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("Predicted");
    const T* p = in.data<T>();
    const T* label = ctx.In("Labels").data<T>();
    T* out = ctx.Out("Loss").mutable_data<T>();
    const T eps = static_cast<T>(ctx.Float("epsilon"));
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      out[i] = -label[i] * std::log(p[i] + eps) - (T(1) - label[i]) * std::log(T(1) - p[i] + eps);
    });
    return Status::Ok();
  }
};

template <typename T>
struct LogLossGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("Predicted");
    const T* p = in.data<T>();
    const T* label = ctx.In("Labels").data<T>();
    const T* dout = ctx.In("Loss@GRAD").data<T>();
    T* dx = ctx.Out("Predicted@GRAD").mutable_data<T>();
    const T eps = static_cast<T>(ctx.Float("epsilon"));
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      dx[i] = dout[i] * ((T(1) - label[i]) / (T(1) - p[i] + eps) - label[i] / (p[i] + eps));
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(log_loss) {
  op.Doc("negative log likelihood of binary labels")
      .Input("Predicted")
      .Input("Labels")
      .Output("Loss")
      .Attr("epsilon", 1e-4f)
      .Inplace("Predicted", "Loss")
      .Contract("Predicted: float; Labels: as Predicted count Predicted; Loss: like Predicted")
      .Kernels<LogLoss, float, double>();
}

HEDDLE_OP(log_loss_grad) {
  op.Input("Predicted")
      .Input("Labels")
      .Input("Loss@GRAD")
      .Output("Predicted@GRAD")
      .Attr("epsilon", 1e-4f)
      .Inplace("Loss@GRAD", "Predicted@GRAD")
      .Contract(
          "Predicted: float; Labels, Loss@GRAD: as Predicted count Predicted; "
          "Predicted@GRAD: like Predicted")
      .Kernels<LogLossGrad, float, double>();
}

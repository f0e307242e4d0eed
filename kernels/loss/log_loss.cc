// log_loss: the negative log-likelihood of binary labels.
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferLog(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Predicted", "Labels"));
  return SameShape(ctx);
}

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

Status InferLogGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Predicted", "Labels"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Predicted", "Loss@GRAD"));
  return GradLikeInputs(ctx);
}

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
      .InferShape(InferLog)
      .Kernels<LogLoss, float, double>();
}

HEDDLE_OP(log_loss_grad) {
  op.Input("Predicted")
      .Input("Labels")
      .Input("Loss@GRAD")
      .Output("Predicted@GRAD")
      .Attr("epsilon", 1e-4f)
      .Inplace("Loss@GRAD", "Predicted@GRAD")
      .InferShape(InferLogGrad)
      .Kernels<LogLossGrad, float, double>();
}

HEDDLE_EXAMPLES(log_loss, R"(
example float32 4x1, epsilon 0.0001
attr epsilon FLOAT 0.0001
in Labels float32 [4, 1] 0.22 0.51 0.26 0.12
in Predicted float32 [4, 1] 0.178 0.237 0.355 0.296
out Loss float32 [4, 1] 0.5323869 0.8665088 0.5935715 0.45478165
)")

HEDDLE_EXAMPLES(log_loss_grad, R"(
example float32 4x1, epsilon 0.0001
attr epsilon FLOAT 0.0001
in Labels float32 [4, 1] 0.11 0.42 0.86 0.11
in Loss@GRAD float32 [4, 1] -0.8 -0.3 0.7 -0.8
in Predicted float32 [4, 1] 0.296 0.237 0.178 0.355
out Predicted@GRAD float32 [4, 1] -0.7140231 0.30340403 -3.2609165 -0.85588735
)")

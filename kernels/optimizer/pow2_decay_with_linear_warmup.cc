#include "core/shapes.h"

namespace heddle {
namespace {

Status InferWarmup(ShapeContext& ctx) {
  const Shape &rate = ctx.InShape("LearningRate"), &step = ctx.InShape("Step");
  if ((rate.is_static() && rate.numel() != 1) || (step.is_static() && step.numel() != 1))
    return InvalidArgument("LearningRate and Step must hold one value each");
  if (ctx.InDType("Step") != DType::kI64) return InvalidArgument("Step must be int64");
  ctx.SetOut("LearningRateOut", rate, ctx.InDType("LearningRate"));
  ctx.SetOut("StepOut", step, DType::kI64);
  return Status::Ok();
}

template <typename T>
struct Decay {
  static Status Run(KernelContext& ctx) {
    const int64_t step = *ctx.In("Step").data<int64_t>() + 1;
    const double base = ctx.Float("base_lr"), end = ctx.Float("end_lr");
    const auto warmup = static_cast<double>(ctx.Int("warmup_steps"));
    const auto total = static_cast<double>(ctx.Int("total_steps"));
    const auto now = static_cast<double>(step);
    double rate = end;
    if (now <= warmup) {
      rate = base * now / warmup;
    } else if (now < total) {
      const double left = 1 - (now - warmup) / (total - warmup);
      rate = (base - end) * left * left + end;
    }
    *ctx.Out("LearningRateOut").template mutable_data<T>() = static_cast<T>(rate);
    *ctx.Out("StepOut").template mutable_data<int64_t>() = step;
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(pow2_decay_with_linear_warmup) {
  op.Doc("The learning rate of the next step: up in a line to base_lr, down to end_lr by a square");
  op.Input("LearningRate").Input("Step").Output("LearningRateOut").Output("StepOut");
  op.Attr("warmup_steps", 0).Attr("total_steps", 0).Attr("base_lr", 0.0).Attr("end_lr", 0.0);
  op.InferShape(InferWarmup).Kernels<Decay, float, double>();
}

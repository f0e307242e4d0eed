#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferKldiv(ShapeContext& ctx) {
  const bool none = ctx.Str("reduction") == "none";
  ctx.SetOut("Loss", none ? ctx.InShape("X") : Shape{}, ctx.InDType("X"));
  return Status::Ok();
}

int64_t Divisor(LossReduction how, const Tensor& x) {
  if (how == LossReduction::kMean) return x.numel();  // of nothing: not a number
  if (how == LossReduction::kBatchMean) return x.rank() > 0 ? std::max<int64_t>(1, x.dim(0)) : 1;
  return 1;
}

template <typename T>
struct KlDiv {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const LossReduction how, LossReductionOf(ctx.Str("reduction")));
    const T* x = in.data<T>();
    const T* target = ctx.In("Target").data<T>();
    T* out = ctx.Out("Loss").mutable_data<T>();
    const auto term = [=](int64_t i) {
      return target[i] > T(0) ? target[i] * (std::log(target[i]) - x[i]) : T(0);
    };
    if (how == LossReduction::kNone) {
      ForEachIndex(ctx, in.numel(), [=](int64_t i) { out[i] = term(i); });
      return Status::Ok();
    }
    T sum = 0;
    for (const auto part : Stretches(in.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) sum += term(i);
    *out = sum / static_cast<T>(Divisor(how, in));
    return Status::Ok();
  }
};

Status InferKldivGrad(ShapeContext& ctx) {
  if (ctx.Str("reduction") == "none") HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Loss@GRAD"));
  return GradLikeInputs(ctx);
}

template <typename T>
struct KlDivGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const LossReduction how, LossReductionOf(ctx.Str("reduction")));
    const T* target = ctx.In("Target").data<T>();
    const T* dout = ctx.In("Loss@GRAD").data<T>();
    T* dx = ctx.Out("X@GRAD").mutable_data<T>();
    const bool each = how == LossReduction::kNone;
    const T factor = T(1) / static_cast<T>(Divisor(how, in));
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      dx[i] = target[i] > T(0) ? -target[i] * dout[each ? i : 0] * factor : T(0);
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(kldiv_loss) {
  op.Doc("Kullback-Leibler divergence of log-probabilities from a target distribution")
      .Input("X")
      .Input("Target")
      .Output("Loss")
      .Attr("reduction", "mean")
      .InferShape(InferKldiv)
      .Contract("X: float; Target: as X count X; reduction: none|mean|sum|batchmean")
      .Kernels<KlDiv, float, double>();
}

HEDDLE_OP(kldiv_loss_grad) {
  op.Input("X", kNoBuffer)
      .Input("Target")
      .Input("Loss@GRAD")
      .Output("X@GRAD")
      .Attr("reduction", "mean")
      .InferShape(InferKldivGrad)
      .Contract(
          "X: float; Target, Loss@GRAD: as X; Target: count X; reduction: "
          "none|mean|sum|batchmean")
      .Kernels<KlDivGrad, float, double>();
}

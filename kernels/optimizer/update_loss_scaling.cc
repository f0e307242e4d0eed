// update_loss_scaling: raises or lowers the loss scale after a step.
#include "core/memory/watched_bytes.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferScaling(ShapeContext& ctx) {
  for (int i = 0; i < ctx.InCount("X"); ++i)
    ctx.SetOut("Out", ctx.InShape("X", i), ctx.InDType("X", i), i);
  for (Key key :
       {Key("FoundInfinite"), Key("PrevLossScaling"), Key("InGoodSteps"), Key("InBadSteps")}) {
    const Shape& s = ctx.InShape(key);
    if (s.is_static() && s.numel() != 1)
      return InvalidArgument(key.name, " must hold one value, not ", s.ToString());
  }
  SetOutsLike(ctx, {{"PrevLossScaling", "LossScaling"},
                    {"InGoodSteps", "OutGoodSteps"},
                    {"InBadSteps", "OutBadSteps"}});
  return Status::Ok();
}

template <typename T>
struct UpdateScaling {
  static Status Run(KernelContext& ctx) {
    const bool found = Flag(ctx, "FoundInfinite");
    for (int i = 0, count = ctx.InCount("X"); i < count; ++i) {
      const Tensor& x = ctx.In("X", i);
      Tensor& out = ctx.Out("Out", i);
      if (found)
        WatchedMemset(out.mutable_raw(), 0, out.bytes());
      else
        CopyWhenApart(x, out);
    }
    const Tensor* stop = ctx.InOpt("StopUpdate");
    if (ctx.Bool("stop_update") || (stop && stop->dtype() == DType::kBool && *stop->data<bool>())) {
      CopyWhenApart(ctx.In("PrevLossScaling"), ctx.Out("LossScaling"));
      CopyWhenApart(ctx.In("InGoodSteps"), ctx.Out("OutGoodSteps"));
      CopyWhenApart(ctx.In("InBadSteps"), ctx.Out("OutBadSteps"));
      return Status::Ok();
    }
    const T scale = *ctx.In("PrevLossScaling").template data<T>();
    int32_t good = *ctx.In("InGoodSteps").data<int32_t>();
    int32_t bad = *ctx.In("InBadSteps").data<int32_t>();
    T next = scale;
    good = found ? 0 : good + 1;
    bad = found ? bad + 1 : 0;
    if (found && bad == ctx.Int("decr_every_n_nan_or_inf")) {
      next = std::max(T(1), scale * static_cast<T>(ctx.Float("decr_ratio")));
      bad = 0;
    } else if (!found && good == ctx.Int("incr_every_n_steps")) {
      const T raised = scale * static_cast<T>(ctx.Float("incr_ratio"));
      next = std::isfinite(raised) ? raised : scale;
      good = 0;
    }
    *ctx.Out("LossScaling").template mutable_data<T>() = next;
    *ctx.Out("OutGoodSteps").mutable_data<int32_t>() = good;
    *ctx.Out("OutBadSteps").mutable_data<int32_t>() = bad;
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(update_loss_scaling) {
  op.Doc("raises the loss scale after good steps, lowers it after bad ones")
      .Input("X", kList)
      .Input("FoundInfinite")
      .Input("PrevLossScaling")
      .Input("InGoodSteps")
      .Input("InBadSteps")
      .Input("StopUpdate", kOptional)
      .Output("Out", kList)
      .Output("LossScaling")
      .Output("OutGoodSteps")
      .Output("OutBadSteps")
      .Attr("incr_every_n_steps", 1000)
      .Attr("decr_every_n_nan_or_inf", 2)
      .Attr("incr_ratio", 2.0)
      .Attr("decr_ratio", 0.8f)
      .Attr("stop_update", false)
      .KernelKey("PrevLossScaling")
      .InferShape(InferScaling)
      .Kernels<UpdateScaling, float, double>();
}

HEDDLE_EXAMPLES(update_loss_scaling, R"(
example float32 good step
attr incr_every_n_steps INT 2
attr decr_every_n_nan_or_inf INT 2
attr incr_ratio FLOAT 2.0
attr decr_ratio FLOAT 0.5
in X float32 [2] -0.02 -0.78
in X float32 [1, 3] 0.01 -0.5 -0.67
in FoundInfinite bool [1] 0
in PrevLossScaling float32 [1] 8
in InGoodSteps int32 [1] 1
in InBadSteps int32 [1] 0
out Out ?
out Out ?
out LossScaling float32 [1] 16
out OutGoodSteps int32 [1] 0
out OutBadSteps int32 [1] 0

example float32 bad step
attr incr_every_n_steps INT 2
attr decr_every_n_nan_or_inf INT 2
attr incr_ratio FLOAT 2.0
attr decr_ratio FLOAT 0.5
in X float32 [2] 0.72 -0.44
in X float32 [2] 1 inf
in FoundInfinite bool [1] 1
in PrevLossScaling float32 [1] 8
in InGoodSteps int32 [1] 1
in InBadSteps int32 [1] 1
out Out float32 [2] 0 0
out Out float32 [2] 0 0
out LossScaling float32 [1] 4
out OutGoodSteps int32 [1] 0
out OutBadSteps int32 [1] 0

example float64 good step
attr incr_every_n_steps INT 2
attr decr_every_n_nan_or_inf INT 2
attr incr_ratio FLOAT 2.0
attr decr_ratio FLOAT 0.5
in X float64 [2] 0.55 0.79
in X float64 [1, 3] -0.84 0.34 0.24
in FoundInfinite bool [1] 0
in PrevLossScaling float64 [1] 8
in InGoodSteps int32 [1] 1
in InBadSteps int32 [1] 0
out Out ?
out Out ?
out LossScaling float64 [1] 16
out OutGoodSteps int32 [1] 0
out OutBadSteps int32 [1] 0

example float64 bad step
attr incr_every_n_steps INT 2
attr decr_every_n_nan_or_inf INT 2
attr incr_ratio FLOAT 2.0
attr decr_ratio FLOAT 0.5
in X float64 [2] 0.12 -0.29
in X float64 [2] 1 inf
in FoundInfinite bool [1] 1
in PrevLossScaling float64 [1] 8
in InGoodSteps int32 [1] 1
in InBadSteps int32 [1] 1
out Out float64 [2] 0 0
out Out float64 [2] 0 0
out LossScaling float64 [1] 4
out OutGoodSteps int32 [1] 0
out OutBadSteps int32 [1] 0

example stopped
attr incr_every_n_steps INT 2
attr decr_every_n_nan_or_inf INT 2
attr incr_ratio FLOAT 2.0
attr decr_ratio FLOAT 0.5
attr stop_update BOOLEAN true
in X float32 [2] 0.44 0.55
in FoundInfinite bool [1] 0
in PrevLossScaling float32 [1] 8
in InGoodSteps int32 [1] 1
in InBadSteps int32 [1] 0
out Out ?
out LossScaling ?
out OutGoodSteps ?
out OutBadSteps ?

example bad, but not often enough
attr incr_every_n_steps INT 2
attr decr_every_n_nan_or_inf INT 2
attr incr_ratio FLOAT 2.0
attr decr_ratio FLOAT 0.5
in X float32 [2] 0.03 0.97
in FoundInfinite bool [1] 1
in PrevLossScaling float32 [1] 8
in InGoodSteps int32 [1] 1
in InBadSteps int32 [1] 0
out Out float32 [2] 0 0
out LossScaling=PrevLossScaling float32 [1] 8
out OutGoodSteps=InGoodSteps int32 [1] 0
out OutBadSteps=InBadSteps int32 [1] 1

example bad, but not often enough, stop_update true
attr incr_every_n_steps INT 2
attr decr_every_n_nan_or_inf INT 2
attr incr_ratio FLOAT 2.0
attr decr_ratio FLOAT 0.5
attr stop_update BOOLEAN true
in X float32 [2] 0.03 0.97
in FoundInfinite bool [1] 1
in PrevLossScaling float32 [1] 8
in InGoodSteps int32 [1] 1
in InBadSteps int32 [1] 0
out Out float32 [2] 0 0
out LossScaling=PrevLossScaling float32 [1] 8
out OutGoodSteps=InGoodSteps int32 [1] 1
out OutBadSteps=InBadSteps int32 [1] 0
)")

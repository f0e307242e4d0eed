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

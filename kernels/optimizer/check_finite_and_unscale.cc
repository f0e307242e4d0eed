// check_finite_and_unscale and update_loss_scaling: the arithmetic of dynamic loss scaling.
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferCheck(ShapeContext& ctx) {
  const Shape& scale = ctx.InShape("Scale");
  if (scale.is_static() && scale.numel() != 1)
    return InvalidArgument("Scale must hold one value, not ", scale.ToString());
  if (ctx.InCount("X") != ctx.OutCount("Out")) return InvalidArgument("Out must be as many as X");
  for (int i = 0; i < ctx.InCount("X"); ++i)
    ctx.SetOut("Out", ctx.InShape("X", i), ctx.InDType("X", i), i);
  ctx.SetOut("FoundInfinite", Shape{1}, DType::kBool);
  return Status::Ok();
}

template <typename T>
struct CheckFinite {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const double scale, ScalarOf(ctx, "Scale"));
    T factor = T(1) / static_cast<T>(scale);
    bool found = false;
    for (int i = 0, count = ctx.InCount("X"); i < count; ++i) {
      const Tensor& in = ctx.In("X", i);
      if (in.dtype() != kDTypeOf<T>) return InvalidArgument("all X must have the same dtype");
      const T* x = in.data<T>();
      T* out = ctx.Out("Out", i).template mutable_data<T>();
      for (int64_t k = 0, n = in.numel(); k < n; ++k) found |= !std::isfinite(x[k]);
      if (found) factor = T(0);  // the step is to be skipped: nothing usable comes out
      for (int64_t k = 0, n = in.numel(); k < n; ++k) out[k] = x[k] * factor;
    }
    *ctx.Out("FoundInfinite").mutable_data<bool>() = found;
    return Status::Ok();
  }
};

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
        std::memset(out.mutable_raw(), 0, out.bytes());
      else
        CopyWhenApart(x, out);
    }
    const Tensor* stop = ctx.InOpt("StopUpdate");
    if (ctx.Bool("stop_update") || (stop && stop->dtype() == DType::kBool && *stop->data<bool>()))
      return Status::Ok();
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

HEDDLE_OP(check_finite_and_unscale) {
  op.Doc("divides gradients by the loss scale and reports infinities and NaN")
      .Input("X", kList)
      .Input("Scale")
      .Output("Out", kList)
      .Output("FoundInfinite")
      .InferShape(InferCheck)
      .Kernels<CheckFinite, float, double>();
}

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

HEDDLE_EXAMPLES(check_finite_and_unscale, R"(
example float32 4x1x4
in Scale float32 [1] 4
in X float32 [4, 1, 4] -0.24 -0.56 0.64 0.2 -0.13 0.86 -0.34 0.31 0.09 0.53 -0.67 0.42 -0.78 0.75
  -0.02 -0.45
out FoundInfinite bool [1] 0
out Out float32 [4, 1, 4] -0.06 -0.14 0.16 0.05 -0.0325 0.215 -0.085 0.0775 0.0225 0.1325 -0.1675
  0.105 -0.195 0.1875 -0.005 -0.1125

example float32 3x2x2x4
in Scale float32 [1] 4
in X float32 [3, 2, 2, 4] -0.35 0.59 0.75 -0.43 -0.3 -0.18 0.51 -0.96 0.71 0.79 -0.51 0.3 0.87 0.1
  0.26 0.63 0.39 0.43 0.95 -0.47 -0.71 -0.79 -0.55 -0.06 -0.63 0.35 -0.75 0.67 0.22 0.02 0.47 -0.83
  0.18 0.14 0.55 -0.59 -0.91 -0.1 -0.26 -0.14 0.83 -0.87 -0.39 0.91 0.06 -0.02 -0.67 -0.22
in X float32 [3] 0.41 0.6 -0.12
out FoundInfinite bool [1] 0
out Out float32 [3, 2, 2, 4] -0.0875 0.1475 0.1875 -0.1075 -0.075 -0.045 0.1275 -0.24 0.1775 0.1975
  -0.1275 0.075 0.2175 0.025 0.065 0.1575 0.0975 0.1075 0.2375 -0.1175 -0.1775 -0.1975 -0.1375
  -0.015 -0.1575 0.0875 -0.1875 0.1675 0.055 0.005 0.1175 -0.2075 0.045 0.035 0.1375 -0.1475 -0.2275
  -0.025 -0.065 -0.035 0.2075 -0.2175 -0.0975 0.2275 0.015 -0.005 -0.1675 -0.055
out Out float32 [3] 0.1025 0.15 -0.03

example float64 4x1x4
in Scale float64 [1] 4
in X float64 [4, 1, 4] -0.24 -0.56 0.64 0.2 -0.13 0.86 -0.34 0.31 0.09 0.53 -0.67 0.42 -0.78 0.75
  -0.02 -0.45
out FoundInfinite bool [1] 0
out Out float64 [4, 1, 4] -0.06 -0.14 0.16 0.05 -0.0325 0.215 -0.085 0.0775 0.0225 0.1325 -0.1675
  0.105 -0.195 0.1875 -0.005 -0.1125
)")

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
)")

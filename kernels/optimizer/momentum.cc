// momentum and merged_momentum (the same update for a list of parameters).
#include "core/memory/watched_bytes.h"
#include "core/operands/slot_kinds.h"
#include "core/shape_context.h"
#include "kernels/optimizer/update_rule.h"

namespace heddle {
namespace {

constexpr KeyPair kMomentumStates[] = {{"Param", "ParamOut"}, {"Velocity", "VelocityOut"}};

template <typename C>
struct MomentumRule {
  static constexpr auto& kStates = kMomentumStates;
  static constexpr bool kMasters = true;
  static constexpr bool kLazy = false;
  void Step(C* s, C g) const {
    const C d = g * rescale + decay * s[0];
    const C v = mu * s[1] + d;
    s[0] -= lr * (now * d + ahead * v);
    s[1] = v;
  }
  C mu, lr, decay, rescale, now, ahead;  // Nesterov's step is the gradient and mu velocities
};
template <typename C>
MomentumRule<C> MakeMomentum(double mu, double lr, double decay, double rescale, bool nesterov) {
  return {static_cast<C>(mu),      static_cast<C>(lr),     static_cast<C>(decay),
          static_cast<C>(rescale), nesterov ? C(1) : C(0), nesterov ? static_cast<C>(mu) : C(1)};
}

// The velocity holds steps, not gradients.
template <typename C>
struct StepMomentum : MomentumRule<C> {
  void Step(C* s, C g) const {
    const C step = this->lr * (g * this->rescale + this->decay * s[0]);
    const C v = this->mu * s[1] - step;
    s[0] += this->ahead * v - this->now * step;
    s[1] = v;
  }
};

Status InferMomentum(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(ctx, {{"Param", "ParamOut"}, {"Velocity", "VelocityOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename T>
struct Momentum {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    HEDDLE_RETURN_IF_ERROR(CheckMasters(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const double lr, ScalarOf(ctx, "LearningRate"));
    const bool l2 = ctx.Str("regularization_method") == "l2_decay";
    const Value* grad = ctx.InVar("Grad");
    // Paddle's CPU kernel scales the gradient of selected rows alone.
    const bool rows = HasGradRows(ctx) || (grad != nullptr && grad->is_rows());
    const auto rule = MakeMomentum<C>(
        ScalarOr(ctx, "MuTensor", "mu"), lr, l2 ? ctx.Float("regularization_coeff") : 0.0,
        rows ? ctx.Float("rescale_grad") : 1.0, ctx.Bool("use_nesterov"));
    if (ctx.Bool("velocity_of_steps")) return RunUpdate<T>(ctx, StepMomentum<C>{rule});
    return RunUpdate<T>(ctx, rule);
  }
};

Status InferMergedMomentum(ShapeContext& ctx) {
  const int count = ctx.InCount("Param");
  if (ctx.InCount("Grad") != count || ctx.InCount("Velocity") != count)
    return InvalidArgument("Param, Grad and Velocity must be equally many");
  const int rates = ctx.InCount("LearningRate");
  if (rates != 1 && rates != count)
    return InvalidArgument("LearningRate must be one or one per Param");
  const auto methods = ctx.Attr<Strings>("regularization_method").size();
  const auto coeffs = ctx.Attr<Floats>("regularization_coeff").size();
  if (methods != 0 && (methods != static_cast<size_t>(count) || coeffs != methods))
    return InvalidArgument("regularization_method and _coeff must be empty or one per Param");
  for (int i = 0; i < count; ++i) {
    const Shape& p = ctx.InShape("Param", i);
    for (Key key : {Key("Grad"), Key("Velocity")}) {
      const Shape& s = ctx.InShape(key, i);
      if (p.is_static() && s.is_static() && s.numel() != p.numel())
        return InvalidArgument(key.name, "[", i, "] ", s.ToString(), " must fit Param ",
                               p.ToString());
      if (ctx.InDType(key, i) != ctx.InDType("Param", i))
        return InvalidArgument(key.name, "[", i, "] must have the dtype of Param");
    }
    ctx.SetOut("ParamOut", p, ctx.InDType("Param", i), i);
    ctx.SetOut("VelocityOut", ctx.InShape("Velocity", i), ctx.InDType("Velocity", i), i);
  }
  SetMastersLike(ctx);
  return Status::Ok();
}

template <typename T>
struct MergedMomentum {
  static Status Run(KernelContext& ctx) {
    const auto& methods = ctx.Attr<Strings>("regularization_method");
    const auto& coeffs = ctx.Attr<Floats>("regularization_coeff");
    const bool one_rate = ctx.InCount("LearningRate") == 1;
    for (int i = 0, count = ctx.InCount("Param"); i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      const bool l2 = at < methods.size() && methods[at] == "l2_decay";
      const Tensor& rate = ctx.In("LearningRate", one_rate ? 0 : i);
      if (rate.numel() < 1 || rate.dtype() != kDTypeOf<T>)
        return InvalidArgument("LearningRate must hold one value of Param's dtype");
      const MomentumRule<T> rule =
          MakeMomentum<T>(ctx.Float("mu"), static_cast<double>(*rate.data<T>()),
                          l2 ? coeffs[at] : 0.0, 1.0, ctx.Bool("use_nesterov"));
      const Tensor& param = ctx.In("Param", i);
      // With multi_precision, the master copy is what is updated; parameters of full precision
      // become the same.
      const Tensor* held = ctx.Bool("multi_precision") ? ctx.InOpt("MasterParam", i) : nullptr;
      if (held != nullptr && (held->dtype() != param.dtype() || held->numel() != param.numel()))
        return InvalidArgument("MasterParam[", i, "] has ", held->numel(), " elements of ",
                               Name(held->dtype()), ", expected ", param.numel(), " of Param's ",
                               Name(param.dtype()));
      const bool from_master = held != nullptr && ctx.OutOpt("MasterParamOut", i) != nullptr;
      const T* p = (from_master ? *held : param).template data<T>();
      const T* g = ctx.In("Grad", i).template data<T>();
      const T* v = ctx.In("Velocity", i).template data<T>();
      T* p_out = ctx.Out("ParamOut", i).template mutable_data<T>();
      T* v_out = ctx.Out("VelocityOut", i).template mutable_data<T>();
      ctx.ParallelFor(param.numel(), 16384, [=](int64_t b, int64_t e) {
        StepAll<MomentumRule<T>, T, 2>(rule, {p, v}, {p_out, v_out}, b, e - b, g + b);
      });
      if (!from_master)
        KeepMaster(ctx, i);
      else if (param.bytes() > 0)
        WatchedMemcpy(ctx.OutOpt("MasterParamOut", i)->mutable_raw(), p_out, param.bytes());
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(momentum) {
  DeclareRowUpdate(op).Doc("v = mu v + grad; param -= lr v, or Nesterov's form").Input("Velocity");
  op.Input("MasterParam", kOptional).Input("MuTensor", kOptional);
  op.Output("VelocityOut").Output("MasterParamOut", kOptional);
  op.Attr("mu", 0.0).Attr("use_nesterov", false).Attr("regularization_method", "");
  op.Attr("regularization_coeff", 0.0).Attr("multi_precision", false).Attr("rescale_grad", 1.0);
  op.Attr("velocity_of_steps", false);  // v = mu v - lr grad; param += v
  op.Inplace("Velocity", "VelocityOut").InferShape(InferMomentum);
  op.Kernels<Momentum, float, double, float16, bfloat16>();
}

HEDDLE_OP(merged_momentum) {
  op.Doc("momentum for a list of parameters")
      .Input("Param", kList)
      .Input("Grad", kList)
      .Input("Velocity", kList)
      .Input("LearningRate", kList)
      .Input("MasterParam", kList | kOptional)
      .Output("ParamOut", kList)
      .Output("VelocityOut", kList)
      .Output("MasterParamOut", kList | kOptional)
      .Attr("mu", 0.0)
      .Attr("use_nesterov", false)
      .Attr("regularization_method", Strings{})
      .Attr("regularization_coeff", Floats{})
      .Attr("multi_precision", false)
      .Attr("rescale_grad", 1.0)
      .InferShape(InferMergedMomentum)
      .Kernels<MergedMomentum, float, double>();
}

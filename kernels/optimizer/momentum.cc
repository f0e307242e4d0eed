// momentum and merged_momentum (the same update for a list of parameters).
#include "core/memory/watched_bytes.h"
#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

struct MomentumRule {
  double mu, lr, decay, rescale;
  bool nesterov;
};

// One run of elements; in and out may be the same memory.
template <typename T>
void MomentumUpdate(const MomentumRule& rule, int64_t n, const T* g, const T* p, const T* v,
                    T* p_out, T* v_out) {
  const T mu = static_cast<T>(rule.mu), lr = static_cast<T>(rule.lr);
  const T decay = static_cast<T>(rule.decay), rescale = static_cast<T>(rule.rescale);
  const T ahead = rule.nesterov ? mu : T(0), now = rule.nesterov ? T(1) : T(0);
  const T direct = rule.nesterov ? T(0) : T(1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T d = g[i] * rescale + decay * p[i];
    const T v_new = mu * v[i] + d;
    p_out[i] = p[i] - lr * (now * d + (ahead + direct) * v_new);
    v_out[i] = v_new;
  }
}

Status InferMomentum(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(ctx, {{"Param", "ParamOut"}, {"Velocity", "VelocityOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename T>
struct Momentum {
  static Status Run(KernelContext& ctx) {
    const Tensor& param = ctx.In("Param");
    HEDDLE_ASSIGN_OR_RETURN(const double lr, ScalarOf(ctx, "LearningRate"));
    const bool l2 = ctx.Str("regularization_method") == "l2_decay";
    HEDDLE_ASSIGN_OR_RETURN(const auto grad, Gradient<T>::Of(ctx, ctx.InVar("Grad"), param, false));
    // Paddle's CPU kernel scales the gradient of selected rows alone.
    const MomentumRule rule{ctx.Float("mu"), lr, l2 ? ctx.Float("regularization_coeff") : 0.0,
                            grad.dense() ? 1.0 : ctx.Float("rescale_grad"),
                            ctx.Bool("use_nesterov")};
    const T *p = param.data<T>(), *v = ctx.In("Velocity").data<T>();
    T* p_out = ctx.Out("ParamOut").mutable_data<T>();
    T* v_out = ctx.Out("VelocityOut").mutable_data<T>();
    grad.ForEach(ctx, [=](int64_t at, int64_t n, const T* g) {
      MomentumUpdate(rule, n, g, p + at, v + at, p_out + at, v_out + at);
    });
    return Status::Ok();
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
      const MomentumRule rule{ctx.Float("mu"), static_cast<double>(*rate.data<T>()),
                              l2 ? coeffs[at] : 0.0, 1.0, ctx.Bool("use_nesterov")};
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
        MomentumUpdate(rule, e - b, g + b, p + b, v + b, p_out + b, v_out + b);
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
  op.Doc("v = mu v + grad; param -= lr v, or Nesterov's form")
      .Input("Param")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("Velocity")
      .Input("LearningRate")
      .Input("MasterParam", kOptional)
      .Input("GradRows", kOptional)
      .Output("ParamOut")
      .Output("VelocityOut")
      .Output("MasterParamOut", kOptional)
      .Attr("mu", 0.0)
      .Attr("use_nesterov", false)
      .Attr("regularization_method", "")
      .Attr("regularization_coeff", 0.0)
      .Attr("multi_precision", false)
      .Attr("rescale_grad", 1.0)
      .Inplace("Param", "ParamOut")
      .Inplace("Velocity", "VelocityOut")
      .InferShape(InferMomentum)
      .Kernels<KeepsMaster<Momentum>::Kernel, float, double>();
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

// lamb: Adam steps scaled per parameter by the ratio of norms (You et al., 2020).
#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferLamb(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(
      ctx, {{"Param", "ParamOut"}, {"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}},
      {{"Beta1Pow", "Beta1PowOut"}, {"Beta2Pow", "Beta2PowOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename T>
void WriteBetaPow(KernelContext& ctx, Key in, Key out, double value, T beta) {
  if (Tensor* to = ctx.OutOpt(out)) {
    if (ctx.In(in).dtype() == DType::kF64)
      *to->template mutable_data<double>() = value * static_cast<double>(beta);
    else
      *to->template mutable_data<float>() = static_cast<float>(value) * static_cast<float>(beta);
  }
}

template <typename T>
struct Lamb {
  static Status Run(KernelContext& ctx) {
    const Tensor &param = ctx.In("Param"), &m_in = ctx.In("Moment1"), &v_in = ctx.In("Moment2");
    HEDDLE_ASSIGN_OR_RETURN(const double rate, ScalarOf(ctx, "LearningRate"));
    HEDDLE_ASSIGN_OR_RETURN(const double pow1, ScalarOf(ctx, "Beta1Pow"));
    HEDDLE_ASSIGN_OR_RETURN(const double pow2, ScalarOf(ctx, "Beta2Pow"));
    HEDDLE_ASSIGN_OR_RETURN(const auto grad, Gradient<T>::Of(ctx, ctx.InVar("Grad"), param, false));
    const bool skip = Flag(ctx, "SkipUpdate");
    Tensor &p_to = ctx.Out("ParamOut"), &m_to = ctx.Out("Moment1Out"),
           &v_to = ctx.Out("Moment2Out");
    const T beta1 = static_cast<T>(ctx.Float("beta1")), beta2 = static_cast<T>(ctx.Float("beta2"));
    WriteBetaPow<T>(ctx, "Beta1Pow", "Beta1PowOut", pow1, skip ? T(1) : beta1);
    WriteBetaPow<T>(ctx, "Beta2Pow", "Beta2PowOut", pow2, skip ? T(1) : beta2);
    if (skip) {
      CopyWhenApart(param, p_to);
      CopyWhenApart(m_in, m_to);
      CopyWhenApart(v_in, v_to);
      KeepMasters(ctx);
      return Status::Ok();
    }
    const Tensor* master = SteppedMaster(ctx, param);
    const T *p = (master != nullptr ? *master : param).template data<T>(), *m = m_in.data<T>(),
            *v = v_in.data<T>();
    T *p_out = p_to.mutable_data<T>(), *m_out = m_to.mutable_data<T>(),
      *v_out = v_to.mutable_data<T>();
    const T decay = static_cast<T>(ctx.Float("weight_decay"));
    const T eps = static_cast<T>(ctx.Float("epsilon"));
    const T scale1 = T(1) / (T(1) - static_cast<T>(pow1));
    const T scale2 = T(1) / (T(1) - static_cast<T>(pow2));
    Tensor work = ctx.Scratch(param.dtype(), param.shape());
    T* step = work.mutable_data<T>();
    grad.ForEach(ctx, [=](int64_t at, int64_t n, const T* g) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const int64_t k = at + i;
        const T m_new = beta1 * m[k] + (T(1) - beta1) * g[i];
        const T v_new = beta2 * v[k] + (T(1) - beta2) * g[i] * g[i];
        m_out[k] = m_new;
        v_out[k] = v_new;
        step[k] = m_new * scale1 / (std::sqrt(v_new * scale2) + eps) + decay * p[k];
      }
    });
    T factor = static_cast<T>(rate);
    if (decay > T(0) || ctx.Bool("always_adapt")) {
      const double size = L2Norm(p, param.numel()), length = L2Norm(step, param.numel());
      if (size > 0 && length > 0) factor *= static_cast<T>(size / length);
    }
#pragma GCC ivdep
    for (const auto part : Stretches(param.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) p_out[i] = p[i] - factor * step[i];
    HandMasterOn(ctx, master);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(lamb) {
  op.Doc("Adam with weight decay and a per-layer trust ratio")
      .Input("Param")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("LearningRate")
      .Input("Moment1")
      .Input("Moment2")
      .Input("Beta1Pow")
      .Input("Beta2Pow")
      .Input("MasterParam", kOptional)
      .Input("SkipUpdate", kOptional)
      .Output("ParamOut")
      .Output("Moment1Out")
      .Output("Moment2Out")
      .Output("Beta1PowOut", kOptional)
      .Output("Beta2PowOut", kOptional)
      .Output("MasterParamOut", kOptional)
      .Attr("weight_decay", 0.0)
      .Attr("beta1", 0.9f)
      .Attr("beta2", 0.999f)
      .Attr("epsilon", 1e-6f)
      .Attr("always_adapt", false)
      .Attr("multi_precision", false)
      .Inplace("Param", "ParamOut")
      .Inplace("Moment1", "Moment1Out")
      .Inplace("Moment2", "Moment2Out")
      .InferShape(InferLamb)
      .Kernels<Lamb, float, double>();
}

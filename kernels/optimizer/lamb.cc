// lamb and lars_momentum: steps scaled per layer by the ratio of norms.
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

template <typename T>
double Norm(const T* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::sqrt(sum);
}

Status InferLamb(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(
      ctx, {{"Param", "ParamOut"}, {"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}},
      {{"Beta1Pow", "Beta1PowOut"}, {"Beta2Pow", "Beta2PowOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename T>
void WritePow(KernelContext& ctx, Key in, Key out, double value, T beta) {
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
    WritePow<T>(ctx, "Beta1Pow", "Beta1PowOut", pow1, skip ? T(1) : beta1);
    WritePow<T>(ctx, "Beta2Pow", "Beta2PowOut", pow2, skip ? T(1) : beta2);
    if (skip) {
      CopyWhenApart(param, p_to);
      CopyWhenApart(m_in, m_to);
      CopyWhenApart(v_in, v_to);
      return Status::Ok();
    }
    const T *p = param.data<T>(), *m = m_in.data<T>(), *v = v_in.data<T>();
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
      const double size = Norm(p, param.numel()), length = Norm(step, param.numel());
      if (size > 0 && length > 0) factor *= static_cast<T>(size / length);
    }
#pragma GCC ivdep
    for (int64_t i = 0, n = param.numel(); i < n; ++i) p_out[i] = p[i] - factor * step[i];
    return Status::Ok();
  }
};

Status InferLars(ShapeContext& ctx) {
  const int count = ctx.InCount("Param");
  const auto decays = ctx.Attr<Floats>("lars_weight_decay").size();
  if (ctx.InCount("Grad") != count || ctx.InCount("Velocity") != count ||
      ctx.InCount("LearningRate") != count)
    return InvalidArgument("Param, Grad, Velocity and LearningRate must be equally many");
  if (decays != static_cast<size_t>(count))
    return InvalidArgument("lars_weight_decay must have one value per Param");
  for (int i = 0; i < count; ++i) {
    const Shape& p = ctx.InShape("Param", i);
    for (Key key : {Key("Grad"), Key("Velocity")}) {
      const Shape& s = ctx.InShape(key, i);
      if (s.is_static() && p.is_static() && s.numel() != p.numel())
        return InvalidArgument(key.name, "[", i, "] ", s.ToString(), " must fit Param ",
                               p.ToString());
      if (ctx.InDType(key, i) != ctx.InDType("Param", i))
        return InvalidArgument(key.name, "[", i, "] must have the dtype of Param");
    }
    const Shape& lr = ctx.InShape("LearningRate", i);
    if ((lr.is_static() && lr.numel() != 1) ||
        ctx.InDType("LearningRate", i) != ctx.InDType("Param", i))
      return InvalidArgument("LearningRate must hold one value of Param's dtype");
    ctx.SetOut("ParamOut", p, ctx.InDType("Param", i), i);
    ctx.SetOut("VelocityOut", ctx.InShape("Velocity", i), ctx.InDType("Velocity", i), i);
  }
  return Status::Ok();
}

template <typename T>
struct Lars {
  static Status Run(KernelContext& ctx) {
    const T mu = static_cast<T>(ctx.Float("mu"));
    const double coeff = ctx.Float("lars_coeff"), eps = ctx.Float("epsilon");
    const T rescale = static_cast<T>(ctx.Float("rescale_grad"));
    for (int i = 0, count = ctx.InCount("Param"); i < count; ++i) {
      const Tensor& param = ctx.In("Param", i);
      const int64_t n = param.numel();
      const T *p = param.data<T>(), *g = ctx.In("Grad", i).template data<T>();
      const T* v = ctx.In("Velocity", i).template data<T>();
      T* p_out = ctx.Out("ParamOut", i).template mutable_data<T>();
      T* v_out = ctx.Out("VelocityOut", i).template mutable_data<T>();
      const double decay = ctx.Attr<Floats>("lars_weight_decay")[static_cast<size_t>(i)];
      double lr = static_cast<double>(*ctx.In("LearningRate", i).template data<T>());
      const double size = Norm(p, n), slope = static_cast<double>(rescale) * Norm(g, n);
      if (decay > 0 && size > 0 && slope > 0) lr *= coeff * size / (slope + decay * size + eps);
      const T rate = static_cast<T>(lr), shrink = static_cast<T>(decay);
#pragma GCC ivdep
      for (int64_t k = 0; k < n; ++k) {
        const T v_new = mu * v[k] + rate * (g[k] * rescale + shrink * p[k]);
        v_out[k] = v_new;
        p_out[k] = p[k] - v_new;
      }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(lamb) {
  op.Doc("Adam with weight decay and a per-layer trust ratio")
      .Input("Param")
      .Input("Grad")
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

HEDDLE_OP(lars_momentum) {
  op.Doc("momentum with a per-layer rate from the ratio of norms")
      .Input("Param", kList)
      .Input("Grad", kList)
      .Input("Velocity", kList)
      .Input("LearningRate", kList)
      .Input("MasterParam", kList | kOptional)
      .Output("ParamOut", kList)
      .Output("VelocityOut", kList)
      .Output("MasterParamOut", kList | kOptional)
      .Attr("mu", 0.0)
      .Attr("lars_coeff", 0.001f)
      .Attr("lars_weight_decay", Floats{0.0005f})
      .Attr("epsilon", 0.0)
      .Attr("multi_precision", false)
      .Attr("rescale_grad", 1.0)
      .InferShape(InferLars)
      .Kernels<Lars, float, double>();
}

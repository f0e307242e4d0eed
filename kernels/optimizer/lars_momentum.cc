// lars_momentum: momentum with a rate per parameter from the ratio of norms (You et al., 2017).
#include "core/interrupts.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

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
  SetMastersLike(ctx);
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
      const double size = L2Norm(p, n),
                   slope = std::abs(static_cast<double>(rescale)) * L2Norm(g, n);
      if (decay > 0 && size > 0 && slope > 0) lr *= coeff * size / (slope + decay * size + eps);
      const T rate = static_cast<T>(lr), shrink = static_cast<T>(decay);
      for (const auto part : Stretches(n))
#pragma GCC ivdep
        for (int64_t k = part.begin; k < part.end; ++k) {
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
      .Kernels<KeepsMaster<Lars>::Kernel, float, double>();
}

// adamax: Adam with the infinity norm (Kingma and Ba, 2015).
#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferAdamax(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(
      ctx, {{"Param", "ParamOut"}, {"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename T>
struct Adamax {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const double pow1, ScalarOf(ctx, "Beta1Pow"));
    HEDDLE_ASSIGN_OR_RETURN(const auto c, UpdateInputs<T>::Of(ctx, false));
    const T* m = ctx.In("Moment").template data<T>();
    const T* norm = ctx.In("InfNorm").template data<T>();
    T* m_out = ctx.Out("MomentOut").template mutable_data<T>();
    T* norm_out = ctx.Out("InfNormOut").template mutable_data<T>();
    const T beta1 = static_cast<T>(ctx.Float("beta1")), beta2 = static_cast<T>(ctx.Float("beta2"));
    const T eps = static_cast<T>(ctx.Float("epsilon"));
    const T step = c.lr / (T(1) - static_cast<T>(pow1));
    c.grad.ForEach(ctx, [&](int64_t at, int64_t n, const T* g) {
      const T *p = c.p + at, *m_in = m + at, *norm_in = norm + at;
      T *p_to = c.p_out + at, *m_to = m_out + at, *norm_to = norm_out + at;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const T mean = beta1 * m_in[i] + (T(1) - beta1) * g[i];
        const T size = std::max(std::abs(g[i]), beta2 * norm_in[i] + eps);
        p_to[i] = p[i] - step * (mean / size);
        m_to[i] = mean;
        norm_to[i] = size;
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(adamax) {
  op.Doc("Adam with the infinity norm")
      .Input("Param")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("LearningRate")
      .Input("Moment")
      .Input("InfNorm")
      .Input("Beta1Pow")
      .Input("MasterParam", kOptional)
      .Output("ParamOut")
      .Output("MomentOut")
      .Output("InfNormOut")
      .Output("MasterParamOut", kOptional)
      .Attr("beta1", 0.9f)
      .Attr("beta2", 0.999f)
      .Attr("epsilon", 1e-8f)
      .Attr("multi_precision", false)
      .Inplace("Param", "ParamOut")
      .Inplace("Moment", "MomentOut")
      .Inplace("InfNorm", "InfNormOut")
      .InferShape(InferAdamax)
      .Kernels<KeepsMaster<Adamax>::Kernel, float, double>();
}

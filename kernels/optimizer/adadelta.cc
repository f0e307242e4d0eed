// adadelta: steps scaled by the ratio of past updates to past gradients (Zeiler, 2012).
#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferAdadelta(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(ctx, {{"Param", "ParamOut"},
                                           {"AvgSquaredGrad", "AvgSquaredGradOut"},
                                           {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename T>
struct Adadelta {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const auto c, UpdateInputs<T>::Of(ctx, false));
    const T* sg = ctx.In("AvgSquaredGrad").template data<T>();
    const T* su = ctx.In("AvgSquaredUpdate").template data<T>();
    T* sg_out = ctx.Out("AvgSquaredGradOut").template mutable_data<T>();
    T* su_out = ctx.Out("AvgSquaredUpdateOut").template mutable_data<T>();
    // With multi_precision, a master copy of Param's dtype takes the same steps.
    const Tensor* held = ctx.Bool("multi_precision") ? ctx.InOpt("MasterParam") : nullptr;
    Tensor* stepped = ctx.OutOpt("MasterParamOut");
    const bool steps = held != nullptr && stepped != nullptr && held->dtype() == kDTypeOf<T> &&
                       held->numel() == c.param.numel();
    if (!steps) KeepMasters(ctx);
    const T* master = steps ? held->data<T>() : nullptr;
    T* master_out = steps ? stepped->mutable_data<T>() : nullptr;
    const T eps = static_cast<T>(ctx.Float("epsilon")), rho = static_cast<T>(ctx.Float("rho"));
    c.grad.ForEach(ctx, [&](int64_t at, int64_t n, const T* g) {
      const T *p = c.p + at, *sg_in = sg + at, *su_in = su + at, lr = c.lr;
      T *p_to = c.p_out + at, *sg_to = sg_out + at, *su_to = su_out + at;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const T grads = rho * sg_in[i] + (T(1) - rho) * g[i] * g[i];
        const T update = -std::sqrt((su_in[i] + eps) / (grads + eps)) * g[i];
        su_to[i] = rho * su_in[i] + (T(1) - rho) * update * update;
        sg_to[i] = grads;
        p_to[i] = p[i] + lr * update;
        if (steps) master_out[at + i] = master[at + i] + lr * update;
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(adadelta) {
  op.Doc("steps scaled by the ratio of past updates to past gradients")
      .Input("Param")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("AvgSquaredGrad")
      .Input("AvgSquaredUpdate")
      .Input("LearningRate")
      .Input("MasterParam", kOptional)
      .Output("ParamOut")
      .Output("AvgSquaredGradOut")
      .Output("AvgSquaredUpdateOut")
      .Output("MasterParamOut", kOptional)
      .Attr("rho", 0.95f)
      .Attr("epsilon", 1e-6f)
      .Attr("multi_precision", false)
      .Inplace("Param", "ParamOut")
      .Inplace("AvgSquaredGrad", "AvgSquaredGradOut")
      .Inplace("AvgSquaredUpdate", "AvgSquaredUpdateOut")
      .InferShape(InferAdadelta)
      .Kernels<Adadelta, float, double>();
}

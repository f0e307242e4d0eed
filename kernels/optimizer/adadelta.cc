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

HEDDLE_EXAMPLES(adadelta, R"(
example float32 3x4
in AvgSquaredGrad float32 [3, 4] 0.346 0.859 0.745 0.289 0.631 0.688 0.46 0.916 0.802 0.574 0.403
  0.517
in AvgSquaredUpdate float32 [3, 4] 0.265 0.882 0.677 0.197 0.334 0.539 0.745 0.128 0.608 0.402 0.814
  0.471
in Grad float32 [3, 4] -0.03 0.24 -0.31 0.1 -0.72 -0.59 -0.45 0.79 0.66 -0.17 0.52 0.38
in LearningRate float32 [1] 0.0326
in Param float32 [3, 4] -0.51 0.54 0.39 -0.06 -0.66 -0.21 0.09 0.84 -0.81 0.69 0.24 -0.36
out AvgSquaredGradOut float32 [3, 4] 0.32874498 0.81893 0.71255505 0.27504998 0.62537 0.671005
  0.44712502 0.901405 0.78367996 0.546745 0.39637 0.49837002
out AvgSquaredUpdateOut float32 [3, 4] 0.25178626 0.84100187 0.6477152 0.18750812 0.33114347
  0.52603096 0.7246203 0.12603116 0.5944975 0.38296247 0.80106515 0.45427346
out ParamOut float32 [3, 4] -0.5091219 0.5318803 0.39985064 -0.06275896 -0.6428464 -0.19276142
  0.108936235 0.8302951 -0.82895154 0.6947521 0.21570691 -0.37204304

example float64 3x4
in AvgSquaredGrad float64 [3, 4] 0.346 0.859 0.745 0.289 0.631 0.688 0.46 0.916 0.802 0.574 0.403
  0.517
in AvgSquaredUpdate float64 [3, 4] 0.265 0.882 0.677 0.197 0.334 0.539 0.745 0.128 0.608 0.402 0.814
  0.471
in Grad float64 [3, 4] -0.03 0.24 -0.31 0.1 -0.72 -0.59 -0.45 0.79 0.66 -0.17 0.52 0.38
in LearningRate float64 [1] 0.0326
in Param float64 [3, 4] -0.51 0.54 0.39 -0.06 -0.66 -0.21 0.09 0.84 -0.81 0.69 0.24 -0.36
out AvgSquaredGradOut float64 [3, 4] 0.32874499588608735 0.8189299904465676 0.7125549922645091
  0.2750499966740608 0.6253699986577035 0.6710049959480762 0.44712499693036084 0.9014049965202808
  0.7836799956321717 0.5467449935019016 0.39636999841928483 0.4983699955582619
out AvgSquaredUpdateOut float64 [3, 4] 0.25178627119255775 0.8410017935635626 0.6477152339819279
  0.1875081149631862 0.3311434713356928 0.5260309634889405 0.7246202625305664 0.12603115621295086
  0.59449751229256 0.3829624475904272 0.8010651299956739 0.45427348142819
out ParamOut float64 [3, 4] -0.5091219234575582 0.5318803047892106 0.3998506400673829
  -0.0627589587287433 -0.642846406603564 -0.19276143158866 0.10893623266166566 0.8302950980677344
  -0.8289515189815087 0.6947521187379297 0.21570692574758749 -0.37204302898843683
)")

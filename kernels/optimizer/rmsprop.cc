#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferRmsprop(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(ctx, {{"Param", "ParamOut"},
                                           {"Moment", "MomentOut"},
                                           {"MeanSquare", "MeanSquareOut"},
                                           {"MeanGrad", "MeanGradOut"}}));
  if (ctx.Bool("centered") && (!ctx.HasIn("MeanGrad") || !ctx.HasOut("MeanGradOut")))
    return InvalidArgument("centered RMSProp needs MeanGrad and MeanGradOut");
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename T>
struct Rmsprop {
  static Status Run(KernelContext& ctx) {
    const Tensor& param = ctx.In("Param");
    HEDDLE_ASSIGN_OR_RETURN(const double rate, ScalarOf(ctx, "LearningRate"));
    HEDDLE_ASSIGN_OR_RETURN(const auto grad, Gradient<T>::Of(ctx, ctx.InVar("Grad"), param, false));
    const bool centered = ctx.Bool("centered");
    const T *p = param.data<T>(), *ms = ctx.In("MeanSquare").template data<T>();
    const T* mom = ctx.In("Moment").template data<T>();
    T* p_out = ctx.Out("ParamOut").template mutable_data<T>();
    T* ms_out = ctx.Out("MeanSquareOut").template mutable_data<T>();
    T* mom_out = ctx.Out("MomentOut").template mutable_data<T>();
    const T* mg = centered ? ctx.In("MeanGrad").template data<T>() : nullptr;
    T* mg_out = centered ? ctx.Out("MeanGradOut").template mutable_data<T>() : nullptr;
    const T lr = static_cast<T>(rate), rho = static_cast<T>(ctx.Float("decay"));
    const T eps = static_cast<T>(ctx.Float("epsilon")), mu = static_cast<T>(ctx.Float("momentum"));
    grad.ForEach(ctx, [=](int64_t at, int64_t n, const T* g) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const int64_t k = at + i;
        const T square = rho * ms[k] + (T(1) - rho) * g[i] * g[i];
        T size = square;
        if (centered) {
          const T mean = rho * mg[k] + (T(1) - rho) * g[i];
          size -= mean * mean;
          mg_out[k] = mean;
        }
        const T step = mu * mom[k] + lr * g[i] / std::sqrt(size + eps);
        ms_out[k] = square;
        mom_out[k] = step;
        p_out[k] = p[k] - step;
      }
    });
    // Without centring the mean is only handed on.
    if (!centered && ctx.HasOut("MeanGradOut"))
      if (const Tensor* in = ctx.InOpt("MeanGrad")) CopyWhenApart(*in, ctx.Out("MeanGradOut"));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(rmsprop) {
  op.Doc("momentum of gradients divided by their root mean square")
      .Input("Param")
      .Input("MeanSquare")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("Moment")
      .Input("LearningRate")
      .Input("MeanGrad", kOptional)
      .Input("MasterParam", kOptional)
      .Output("ParamOut")
      .Output("MomentOut")
      .Output("MeanSquareOut")
      .Output("MeanGradOut", kOptional)
      .Output("MasterParamOut", kOptional)
      .Attr("epsilon", 1e-10f)
      .Attr("decay", 0.9f)
      .Attr("momentum", 0.0)
      .Attr("centered", false)
      .Attr("multi_precision", false)
      .Inplace("Param", "ParamOut")
      .Inplace("Moment", "MomentOut")
      .Inplace("MeanSquare", "MeanSquareOut")
      .Inplace("MeanGrad", "MeanGradOut")
      .InferShape(InferRmsprop)
      .Kernels<KeepsMaster<Rmsprop>::Kernel, float, double>();
}

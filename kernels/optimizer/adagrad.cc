// adagrad and decayed_adagrad: steps scaled by running sums of squared gradients.
#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferMoment(ShapeContext& ctx) {
  return InferUpdate(ctx, {{"Param", "ParamOut"}, {"Moment", "MomentOut"}});
}

Status InferAdagrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferMoment(ctx));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename T>
struct Adagrad {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const auto c, UpdateInputs<T>::Of(ctx, true));
    const Tensor& moment = ctx.In("Moment");
    if (!c.grad.dense()) {
      CopyWhenApart(c.param, ctx.Out("ParamOut"));
      CopyWhenApart(moment, ctx.Out("MomentOut"));
    }
    const T* m = moment.data<T>();
    T* m_out = ctx.Out("MomentOut").template mutable_data<T>();
    const T eps = static_cast<T>(ctx.Float("epsilon"));
    c.grad.ForEach(ctx, [&](int64_t at, int64_t n, const T* g) {
      const T *p = c.p + at, *m_in = m + at, lr = c.lr;
      T *p_to = c.p_out + at, *m_to = m_out + at;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const T size = m_in[i] + g[i] * g[i];
        p_to[i] = p[i] - lr * g[i] / (std::sqrt(size) + eps);
        m_to[i] = size;
      }
    });
    return Status::Ok();
  }
};

template <typename T>
struct DecayedAdagrad {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const auto c, UpdateInputs<T>::Of(ctx, false));
    const T* m = ctx.In("Moment").template data<T>();
    T* m_out = ctx.Out("MomentOut").template mutable_data<T>();
    const T eps = static_cast<T>(ctx.Float("epsilon")), decay = static_cast<T>(ctx.Float("decay"));
    c.grad.ForEach(ctx, [&](int64_t at, int64_t n, const T* g) {
      const T *p = c.p + at, *m_in = m + at, lr = c.lr;
      T *p_to = c.p_out + at, *m_to = m_out + at;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const T size = decay * m_in[i] + (T(1) - decay) * g[i] * g[i];
        p_to[i] = p[i] - lr * g[i] / (std::sqrt(size) + eps);
        m_to[i] = size;
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(adagrad) {
  op.Doc("rate divided by the root of summed squared gradients")
      .Input("Param")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("Moment")
      .Input("LearningRate")
      .Input("MasterParam", kOptional)
      .Input("GradRows", kOptional)
      .Output("ParamOut")
      .Output("MomentOut")
      .Output("MasterParamOut", kOptional)
      .Attr("epsilon", 1e-6f)
      .Attr("multi_precision", false)
      .Inplace("Param", "ParamOut")
      .Inplace("Moment", "MomentOut")
      .InferShape(InferAdagrad)
      .Kernels<KeepsMaster<Adagrad>::Kernel, float, double>();
}

HEDDLE_OP(decayed_adagrad) {
  op.Doc("adagrad with a decaying mean of squares")
      .Input("Param")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("Moment")
      .Input("LearningRate")
      .Output("ParamOut")
      .Output("MomentOut")
      .Attr("decay", 0.95f)
      .Attr("epsilon", 1e-6f)
      .Inplace("Param", "ParamOut")
      .Inplace("Moment", "MomentOut")
      .InferShape(InferMoment)
      .Kernels<DecayedAdagrad, float, double>();
}

HEDDLE_EXAMPLES(adagrad, R"(
example rows as tensors
in Param float32 [3, 2] -0.73 0.63 0.03 -0.17 -0.69 0.08
in Grad float32 [2, 2] -0.48 -0.06 -0.7 0.42
in GradRows int64 [2] 2 0
in LearningRate float32 [1] 0.1
in Moment float32 [3, 2] 0.82 0.74 0.28 0.15 0.58 0.9
out ParamOut=Param float32 [3, 2] -0.66884077 0.5861261 0.03 -0.17 -0.6366799 0.08631194
out MomentOut=Moment float32 [3, 2] 1.31 0.9164 0.28 0.15 0.8104 0.9036

example rows
in Param float32 [3, 2] -0.73 0.63 0.03 -0.17 -0.69 0.08
in Grad float32 [2, 2] rows [2, 0] height 3 -0.48 -0.06 -0.7 0.42
in LearningRate float32 [1] 0.1
in Moment float32 [3, 2] 0.82 0.74 0.28 0.15 0.58 0.9
out ParamOut=Param float32 [3, 2] -0.66884077 0.5861261 0.03 -0.17 -0.6366799 0.08631194
out MomentOut=Moment float32 [3, 2] 1.31 0.9164 0.28 0.15 0.8104 0.9036

example float32 5
in Grad float32 [5] 0.02 -0.55 0.3 -0.27 0.59
in LearningRate float32 [1] 0.127
in Moment float32 [5] 0.323 0.409 0.15 0.496 0.236
in Param float32 [5] -0.07 -0.34 -0.62 0.49 0.21
out MomentOut float32 [5] 0.32340002 0.71150005 0.24000001 0.5689 0.5841
out ParamOut float32 [5] -0.07446645 -0.25719082 -0.69777113 0.535462 0.11195813

example float32 2x4
in Grad float32 [2, 4] 0.35 -0.28 0.19 0.51 -0.12 -0.59 0.04 -0.43
in LearningRate float32 [1] 0.14
in Moment float32 [2, 4] 0.606 0.236 0.329 0.884 0.421 0.792 0.514 0.699
in Param float32 [2, 4] -0.72 -0.1 0.53 0.11 -0.51 0.74 -0.31 0.32
out MomentOut float32 [2, 4] 0.7285 0.31440002 0.3651 1.1441 0.4354 1.1401 0.5156 0.8839
out ParamOut float32 [2, 4] -0.77740914 -0.030089244 0.48597744 0.04324776 -0.48453963 0.8173585
  -0.31779885 0.3840316

example float32 1x3x3
in Grad float32 [1, 3, 3] -0.09 0.2 0.5 -0.53 0.06 0.35 -0.38 0.64 -0.24
in LearningRate float32 [1] 0.17
in Moment float32 [1, 3, 3] 0.805 0.355 0.692 0.748 0.467 0.58 0.523 0.411 0.636
in Param float32 [1, 3, 3] 0.4 0.01 -0.19 0.79 -0.78 -0.58 0.2 0.6 -0.39
out MomentOut float32 [1, 3, 3] 0.8131 0.39499998 0.942 1.0289 0.4706 0.7025 0.6674 0.82060003
  0.6936
out ParamOut float32 [1, 3, 3] 0.41696754 -0.04409782 -0.27757758 0.87882555 -0.7948687 -0.65098935
  0.27907494 0.4798946 -0.34101024

example float64 5
in Grad float64 [5] 0.02 -0.55 0.3 -0.27 0.59
in LearningRate float64 [1] 0.127
in Moment float64 [5] 0.323 0.409 0.15 0.496 0.236
in Param float64 [5] -0.07 -0.34 -0.62 0.49 0.21
out MomentOut float64 [5] 0.3234 0.7115 0.24 0.5689 0.5841
out ParamOut float64 [5] -0.07446645481864177 -0.2571908277766977 -0.6977711405836904
  0.5354620423751009 0.11195813563036684
)")

HEDDLE_EXAMPLES(decayed_adagrad, R"(
example float32 3
in Grad float32 [3] 0.38 0.08 -0.37
in LearningRate float32 [1] 0.02
in Moment float32 [3] 0.616 0.54 0.631
in Param float32 [3] -0.34 -0.05 -0.97
out MomentOut float32 [3] 0.59242004 0.51332 0.606295
out ParamOut float32 [3] -0.3498741 -0.05223319 -0.9604964

example float32 2x1
in Grad float32 [2, 1] -0.458 -0.675
in LearningRate float32 [1] 0.103
in Moment float32 [2, 1] 0.853 0.488
in Param float32 [2, 1] 0.618 0.5
out MomentOut float32 [2, 1] 0.8208382 0.48638126
out ParamOut float32 [2, 1] 0.67006826 0.5996901
)")

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

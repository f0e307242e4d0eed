// adagrad, decayed_adagrad, adadelta and adamax: updates by running sizes of the gradient.
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

// What every one of these reads: Param, Grad and the rate.
template <typename T>
struct Common {
  const Tensor& param;
  Gradient<T> grad;
  T lr;
  const T* p;
  T* p_out;

  static Result<Common> Of(KernelContext& ctx, bool lazy) {
    const Tensor& param = ctx.In("Param");
    HEDDLE_ASSIGN_OR_RETURN(const double lr, ScalarOf(ctx, "LearningRate"));
    HEDDLE_ASSIGN_OR_RETURN(auto grad, Gradient<T>::Of(ctx, ctx.InVar("Grad"), param, lazy));
    return Common{param, std::move(grad), static_cast<T>(lr), param.data<T>(),
                  ctx.Out("ParamOut").template mutable_data<T>()};
  }
};

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
    HEDDLE_ASSIGN_OR_RETURN(const auto c, Common<T>::Of(ctx, true));
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
    HEDDLE_ASSIGN_OR_RETURN(const auto c, Common<T>::Of(ctx, false));
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
    HEDDLE_ASSIGN_OR_RETURN(const auto c, Common<T>::Of(ctx, false));
    const T* sg = ctx.In("AvgSquaredGrad").template data<T>();
    const T* su = ctx.In("AvgSquaredUpdate").template data<T>();
    T* sg_out = ctx.Out("AvgSquaredGradOut").template mutable_data<T>();
    T* su_out = ctx.Out("AvgSquaredUpdateOut").template mutable_data<T>();
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
      }
    });
    return Status::Ok();
  }
};

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
    HEDDLE_ASSIGN_OR_RETURN(const auto c, Common<T>::Of(ctx, false));
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

HEDDLE_OP(adagrad) {
  op.Doc("rate divided by the root of summed squared gradients")
      .Input("Param")
      .Input("Grad")
      .Input("Moment")
      .Input("LearningRate")
      .Input("MasterParam", kOptional)
      .Output("ParamOut")
      .Output("MomentOut")
      .Output("MasterParamOut", kOptional)
      .Attr("epsilon", 1e-6f)
      .Attr("multi_precision", false)
      .Inplace("Param", "ParamOut")
      .Inplace("Moment", "MomentOut")
      .InferShape(InferAdagrad)
      .Kernels<Adagrad, float, double>();
}

HEDDLE_OP(decayed_adagrad) {
  op.Doc("adagrad with a decaying mean of squares")
      .Input("Param")
      .Input("Grad")
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

HEDDLE_OP(adadelta) {
  op.Doc("steps scaled by the ratio of past updates to past gradients")
      .Input("Param")
      .Input("Grad")
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

HEDDLE_OP(adamax) {
  op.Doc("Adam with the infinity norm")
      .Input("Param")
      .Input("Grad")
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
      .Kernels<Adamax, float, double>();
}

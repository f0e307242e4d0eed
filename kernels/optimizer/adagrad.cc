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
      .Input("Grad", kAnyKind)
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
      .Input("Grad", kAnyKind)
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
      .Input("Grad", kAnyKind)
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
      .Input("Grad", kAnyKind)
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

HEDDLE_EXAMPLES(adagrad, R"(
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

HEDDLE_EXAMPLES(adamax, R"(
example float32 4
in Beta1Pow float32 [1] 0.9
in Grad float32 [4] 0.47 0 -0.23 0.24
in InfNorm float32 [4] 0.419 0.532 0.192 0.306
in LearningRate float32 [1] 0.0985
in Moment float32 [4] 0.682 0.772 0.503 0.593
in Param float32 [4] 0.38 0.08 -0.23 0.69
out InfNormOut float32 [4] 0.47 0.53146803 0.23 0.30569398
out MomentOut float32 [4] 0.6608 0.6948 0.42970002 0.5577
out ParamOut float32 [4] -1.0048678 -1.207712 -2.0702364 -1.1070073

example float32 4x3, beta1 0.78, beta2 0.899, epsilon 1e-05
attr beta1 FLOAT 0.78
attr beta2 FLOAT 0.899
attr epsilon FLOAT 1e-05
in Beta1Pow float32 [1] 0.0834
in Grad float32 [4, 3] 0.85 0.38 -0.08 -0.69 0.69 -0.85 0.08 0.54 -0.38 -0.23 0.23 -0.54
in InfNorm float32 [4, 3] 0.308 0.846 0.692 0.769 0.385 0.462 0.231 0.615 0.538 0.154 0.077 0.923
in LearningRate float32 [1] 0.002
in Moment float32 [4, 3] 0.23 -0.38 -0.69 -0.85 0.69 0.85 0.54 -0.54 0.08 0.38 -0.23 -0.08
in Param float32 [4, 3] -0.54 0.38 -0.23 -0.38 0.08 -0.08 -0.85 0.23 0.54 0.69 0.85 -0.69
out InfNormOut float32 [4, 3] 0.85 0.760564 0.622118 0.691341 0.69 0.85 0.207679 0.552895 0.483672
  0.23 0.23 0.82978696
out MomentOut float32 [4, 3] 0.36640003 -0.21279997 -0.55579996 -0.8148 0.69 0.47599995 0.4388
  -0.3024 -0.021200012 0.24579997 -0.12879999 -0.18120001
out ParamOut float32 [4, 3] -0.5409406 0.3806105 -0.22805062 -0.37742835 0.07781802 -0.08122191
  -0.85461026 0.23119341 0.5400957 0.68766814 0.8512219 -0.6895235

example float32 1x4x2
in Beta1Pow float32 [1] 0.9
in Grad float32 [1, 4, 2] -0.76 0.1 -0.11 -0.54 0.32 -0.33 0.75 0.54
in InfNorm float32 [1, 4, 2] 0.671 0.186 0.477 0.283 0.38 0.574 0.866 0.769
in LearningRate float32 [1] 0.167
in Moment float32 [1, 4, 2] 0.709 0.622 0.448 0.796 0.274 0.361 0.187 0.535
in Param float32 [1, 4, 2] -0.16 0.18 -0.82 -0.32 -0.65 0.01 0.34 -0.49
out InfNormOut float32 [1, 4, 2] 0.76 0.18581402 0.476523 0.54 0.37962 0.573426 0.865134 0.768231
out MomentOut float32 [1, 4, 2] 0.56209993 0.56979996 0.3922 0.66239995 0.27859998 0.29189998
  0.24330002 0.5355
out ParamOut float32 [1, 4, 2] -1.3951403 -4.9410653 -2.1944852 -2.3685327 -1.8755989 -0.84010595
  -0.12965086 -1.6540833

example float64 4
in Beta1Pow float64 [1] 0.9
in Grad float64 [4] 0.47 0 -0.23 0.24
in InfNorm float64 [4] 0.419 0.532 0.192 0.306
in LearningRate float64 [1] 0.0985
in Moment float64 [4] 0.682 0.772 0.503 0.593
in Param float64 [4] 0.38 0.08 -0.23 0.69
out InfNormOut float64 [4] 0.47 0.5314680168492889 0.23 0.30569401393962853
out MomentOut float64 [4] 0.6607999949455262 0.6947999815940857 0.42969998252391817
  0.5576999915838241
out ParamOut float64 [4] -1.0048680745134968 -1.207712449617165 -2.0702368816785195
  -1.107007683043983
)")

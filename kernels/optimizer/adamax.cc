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

// lamb: Adam steps scaled per parameter by the ratio of norms (You et al., 2020).
#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferLamb(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(
      ctx, {{"Param", "ParamOut"}, {"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}},
      {{"Beta1Pow", "Beta1PowOut"}, {"Beta2Pow", "Beta2PowOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

template <typename T>
void WriteBetaPow(KernelContext& ctx, Key in, Key out, double value, T beta) {
  if (Tensor* to = ctx.OutOpt(out)) {
    if (ctx.In(in).dtype() == DType::kF64)
      *to->template mutable_data<double>() = value * static_cast<double>(beta);
    else
      *to->template mutable_data<float>() = static_cast<float>(value) * static_cast<float>(beta);
  }
}

template <typename T>
struct Lamb {
  static Status Run(KernelContext& ctx) {
    const Tensor &param = ctx.In("Param"), &m_in = ctx.In("Moment1"), &v_in = ctx.In("Moment2");
    HEDDLE_ASSIGN_OR_RETURN(const double rate, ScalarOf(ctx, "LearningRate"));
    HEDDLE_ASSIGN_OR_RETURN(const double pow1, ScalarOf(ctx, "Beta1Pow"));
    HEDDLE_ASSIGN_OR_RETURN(const double pow2, ScalarOf(ctx, "Beta2Pow"));
    HEDDLE_ASSIGN_OR_RETURN(const auto grad, Gradient<T>::Of(ctx, ctx.InVar("Grad"), param, false));
    const bool skip = Flag(ctx, "SkipUpdate");
    Tensor &p_to = ctx.Out("ParamOut"), &m_to = ctx.Out("Moment1Out"),
           &v_to = ctx.Out("Moment2Out");
    const T beta1 = static_cast<T>(ctx.Float("beta1")), beta2 = static_cast<T>(ctx.Float("beta2"));
    WriteBetaPow<T>(ctx, "Beta1Pow", "Beta1PowOut", pow1, skip ? T(1) : beta1);
    WriteBetaPow<T>(ctx, "Beta2Pow", "Beta2PowOut", pow2, skip ? T(1) : beta2);
    if (skip) {
      CopyWhenApart(param, p_to);
      CopyWhenApart(m_in, m_to);
      CopyWhenApart(v_in, v_to);
      return Status::Ok();
    }
    const T *p = param.data<T>(), *m = m_in.data<T>(), *v = v_in.data<T>();
    T *p_out = p_to.mutable_data<T>(), *m_out = m_to.mutable_data<T>(),
      *v_out = v_to.mutable_data<T>();
    const T decay = static_cast<T>(ctx.Float("weight_decay"));
    const T eps = static_cast<T>(ctx.Float("epsilon"));
    const T scale1 = T(1) / (T(1) - static_cast<T>(pow1));
    const T scale2 = T(1) / (T(1) - static_cast<T>(pow2));
    Tensor work = ctx.Scratch(param.dtype(), param.shape());
    T* step = work.mutable_data<T>();
    grad.ForEach(ctx, [=](int64_t at, int64_t n, const T* g) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const int64_t k = at + i;
        const T m_new = beta1 * m[k] + (T(1) - beta1) * g[i];
        const T v_new = beta2 * v[k] + (T(1) - beta2) * g[i] * g[i];
        m_out[k] = m_new;
        v_out[k] = v_new;
        step[k] = m_new * scale1 / (std::sqrt(v_new * scale2) + eps) + decay * p[k];
      }
    });
    T factor = static_cast<T>(rate);
    if (decay > T(0) || ctx.Bool("always_adapt")) {
      const double size = L2Norm(p, param.numel()), length = L2Norm(step, param.numel());
      if (size > 0 && length > 0) factor *= static_cast<T>(size / length);
    }
#pragma GCC ivdep
    for (const auto part : Stretches(param.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) p_out[i] = p[i] - factor * step[i];
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(lamb) {
  op.Doc("Adam with weight decay and a per-layer trust ratio")
      .Input("Param")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("LearningRate")
      .Input("Moment1")
      .Input("Moment2")
      .Input("Beta1Pow")
      .Input("Beta2Pow")
      .Input("MasterParam", kOptional)
      .Input("SkipUpdate", kOptional)
      .Output("ParamOut")
      .Output("Moment1Out")
      .Output("Moment2Out")
      .Output("Beta1PowOut", kOptional)
      .Output("Beta2PowOut", kOptional)
      .Output("MasterParamOut", kOptional)
      .Attr("weight_decay", 0.0)
      .Attr("beta1", 0.9f)
      .Attr("beta2", 0.999f)
      .Attr("epsilon", 1e-6f)
      .Attr("always_adapt", false)
      .Attr("multi_precision", false)
      .Inplace("Param", "ParamOut")
      .Inplace("Moment1", "Moment1Out")
      .Inplace("Moment2", "Moment2Out")
      .InferShape(InferLamb)
      .Kernels<KeepsMaster<Lamb>::Kernel, float, double>();
}

HEDDLE_EXAMPLES(lamb, R"(
example float32 1, weight_decay 0.01
attr weight_decay FLOAT 0.01
in Beta1Pow float32 [1] 0.9
in Beta2Pow float32 [1] 0.999
in Grad float32 [1] 0.33046997
in LearningRate float32 [] 0.2
in Moment1 float32 [1] 0
in Moment2 float32 [1] 0
in Param float32 [1] 0
out Beta1PowOut float32 [1] 0.80999994
out Beta2PowOut float32 [1] 0.99800104
out Moment1Out float32 [1] 0.033047006
out Moment2Out float32 [1] 0.00010920899
out ParamOut float32 [1] -0.19999939

example float32 3x1, weight_decay 0.01
attr weight_decay FLOAT 0.01
in Beta1Pow float32 [1] 0.9
in Beta2Pow float32 [1] 0.999
in Grad float32 [3, 1] 0.14121348 0.21486536 0.22889201
in LearningRate float32 [] 0.2
in Moment1 float32 [3, 1] 0.63 0.91 0.44
in Moment2 float32 [3, 1] 0.97 0.64 0.64
in Param float32 [3, 1] 0.42 0.59 0.38
out Beta1PowOut float32 [1] 0.80999994
out Beta2PowOut float32 [1] 0.99800104
out Moment1Out float32 [3, 1] 0.5811213 0.8404865 0.4188892
out Moment2Out float32 [3, 1] 0.96905 0.6394062 0.6394124
out ParamOut float32 [3, 1] 0.34632343 0.45942605 0.31459194

example float32 3x4x1, weight_decay 0.01
attr weight_decay FLOAT 0.01
in Beta1Pow float32 [1] 0.59
in Beta2Pow float32 [1] 0.995
in Grad float32 [3, 4, 1] 0.35 0.21 0.06 -0.39 -0.09 0.65 0.8 -0.83 -0.24 -0.68 0.5 -0.54
in LearningRate float32 [1] 0.14
in Moment1 float32 [3, 4, 1] 0.64 0.24 -0.58 0.1 0.78 -0.31 0.37 -0.71 -0.04 0.51 -0.44 -0.17
in Moment2 float32 [3, 4, 1] 0.242 0.373 0.438 0.635 0.831 0.307 0.569 0.176 0.897 0.504 0.766 0.7
in Param float32 [3, 4, 1] 0.14 0.42 -0.28 -0.14 0.84 -0.7 -0.56 -0 0.56 0.28 -0.42 0.7
out Beta1PowOut float32 [1] 0.53099996
out Beta2PowOut float32 [1] 0.994005
out Moment1Out float32 [3, 4, 1] 0.611 0.23699999 -0.516 0.050999988 0.69299996 -0.21399997
  0.41300002 -0.72199994 -0.060000002 0.39099997 -0.346 -0.20700002
out Moment2Out float32 [3, 4, 1] 0.2418805 0.3726711 0.4375656 0.63451713 0.83017707 0.30711553
  0.569071 0.1765129 0.8961606 0.5039584 0.765484 0.6995916
out ParamOut float32 [3, 4, 1] 0.02781269 0.3829846 -0.2085588 -0.14501582 0.7673929 -0.66171384
  -0.6062049 0.15417837 0.5627732 0.22912899 -0.38233522 0.7185621

example float32 4x3, beta1 0.78, beta2 0.836, epsilon 0.0001, weight_decay 0.01
attr beta1 FLOAT 0.78
attr beta2 FLOAT 0.836
attr epsilon FLOAT 0.0001
attr weight_decay FLOAT 0.01
in Beta1Pow float32 [1] 0.78
in Beta2Pow float32 [1] 0.836
in Grad float32 [4, 3] -0.69 -0.54 0.54 -0.85 -0.08 0.08 -0.23 0.85 0.38 0.69 -0.38 0.23
in LearningRate float32 [1] 0.001
in Moment1 float32 [4, 3] 0.85 -0.69 0.69 -0.85 0.23 -0.08 -0.54 0.54 0.08 -0.23 0.38 -0.38
in Moment2 float32 [4, 3] 0.462 0.231 0.077 0.769 0.538 0.923 0.615 0.846 0.385 0.692 0.154 0.308
in Param float32 [4, 3] -0.08 0.69 -0.54 0.38 -0.69 0.54 0.08 0.23 0.85 -0.23 -0.38 -0.85
out Beta1PowOut float32 [1] 0.6083999
out Beta2PowOut float32 [1] 0.69889605
out Moment1Out float32 [4, 3] 0.51119995 -0.657 0.657 -0.85 0.1618 -0.04479999 -0.47180003 0.6082001
  0.146 -0.027599975 0.21279997 -0.24579997
out Moment2Out float32 [4, 3] 0.4643124 0.24093841 0.112194404 0.761374 0.4508176 0.7726776
  0.5228156 0.825746 0.3455416 0.65659237 0.1524256 0.26616362
out ParamOut float32 [4, 3] -0.08046926 0.69083536 -0.54122573 0.38060838 -0.6901485 0.54003006
  0.080408104 0.22958033 0.8498417 -0.2299779 -0.38033983 -0.84969896

example float64 1, weight_decay 0.01
attr weight_decay FLOAT 0.01
in Beta1Pow float64 [1] 0.9
in Beta2Pow float64 [1] 0.999
in Grad float64 [1] 0.33046997
in LearningRate float64 [] 0.2
in Moment1 float64 [1] 0
in Moment2 float64 [1] 0
in Param float64 [1] 0
out Beta1PowOut float64 [1] 0.8099999785423279
out Beta2PowOut float64 [1] 0.9980010128617287
out Moment1Out float64 [1] 0.03304700487901807
out Moment2Out float64 [1] 0.00010920899503121399
out ParamOut float64 [1] -0.20000072995196727
)")

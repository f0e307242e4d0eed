// adam, adamw and merged_adam.
#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

struct AdamRule {
  double beta1, beta2, epsilon;
  double step;  // learning rate with both bias corrections
  double keep;  // factor of the decoupled weight decay, 1 for none
};

AdamRule MakeRule(double beta1, double beta2, double epsilon, double pow1, double pow2, double lr,
                  double keep) {
  const double correction = std::sqrt(1 - pow2);
  return {beta1, beta2, epsilon * correction, lr * correction / (1 - pow1), keep};
}

// Pointers to one run of elements; the outputs may be the inputs' memory.
template <typename T>
struct Span {
  const T *p, *m, *v;
  T *p_out, *m_out, *v_out;
  Span From(int64_t at) const {
    return {p + at, m + at, v + at, p_out + at, m_out + at, v_out + at};
  }
};

template <typename T>
void AdamUpdate(const AdamRule& rule, const Span<T>& r, int64_t n, const T* g) {
  const T beta1 = static_cast<T>(rule.beta1), beta2 = static_cast<T>(rule.beta2);
  const T one1 = T(1) - beta1, one2 = T(1) - beta2;
  const T step = static_cast<T>(rule.step), eps = static_cast<T>(rule.epsilon);
  const T keep = static_cast<T>(rule.keep);
  const auto [p, m, v, p_out, m_out, v_out] = r;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T m_new = beta1 * m[i] + one1 * g[i];
    const T v_new = beta2 * v[i] + one2 * g[i] * g[i];
    m_out[i] = m_new;
    v_out[i] = v_new;
    p_out[i] = keep * p[i] - step * (m_new / (std::sqrt(v_new) + eps));
  }
}

Status InferAdam(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(
      ctx, {{"Param", "ParamOut"}, {"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}},
      {{"Beta1Pow", "Beta1PowOut"}, {"Beta2Pow", "Beta2PowOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  if (ctx.Bool("use_global_beta_pow")) {  // left alone: an output of its own stays empty
    if (!ctx.Bool("rewrites:Beta1Pow"))
      ctx.SetOut("Beta1PowOut", Shape{0}, ctx.InDType("Beta1Pow"));
    if (!ctx.Bool("rewrites:Beta2Pow"))
      ctx.SetOut("Beta2PowOut", Shape{0}, ctx.InDType("Beta2Pow"));
  }
  return Status::Ok();
}

void WritePow(KernelContext& ctx, Key in, Key out, double factor) {
  const Tensor& from = ctx.In(in);
  Tensor& to = ctx.Out(out);
  if (from.dtype() == DType::kF64)
    *to.mutable_data<double>() = *from.data<double>() * factor;
  else
    *to.mutable_data<float>() = *from.data<float>() * static_cast<float>(factor);
}

Status CopyAll(KernelContext& ctx) {
  constexpr KeyPair kAll[] = {{"Param", "ParamOut"},
                              {"Moment1", "Moment1Out"},
                              {"Moment2", "Moment2Out"},
                              {"Beta1Pow", "Beta1PowOut"},
                              {"Beta2Pow", "Beta2PowOut"}};
  for (const KeyPair& p : kAll)
    if (ctx.Out(p.out).numel() > 0) CopyWhenApart(ctx.In(p.in), ctx.Out(p.out));
  return Status::Ok();
}

template <typename T>
double Step(double power, double factor) {
  return static_cast<double>(static_cast<T>(power) * static_cast<T>(factor));
}

template <typename T>
Status RunAdam(KernelContext& ctx, double lr_ratio, double coeff) {
  if (Flag(ctx, "SkipUpdate")) return CopyAll(ctx);
  const Tensor& param = ctx.In("Param");
  HEDDLE_ASSIGN_OR_RETURN(const double rate, ScalarOf(ctx, "LearningRate"));
  HEDDLE_ASSIGN_OR_RETURN(double pow1, ScalarOf(ctx, "Beta1Pow"));
  HEDDLE_ASSIGN_OR_RETURN(double pow2, ScalarOf(ctx, "Beta2Pow"));
  const double beta1 = ScalarOr(ctx, "Beta1Tensor", "beta1");
  const double beta2 = ScalarOr(ctx, "Beta2Tensor", "beta2");
  const double epsilon = ScalarOr(ctx, "EpsilonTensor", "epsilon");
  const Value* const g = ctx.InVar("Grad");
  if (HasGradRows(ctx) || (g != nullptr && g->is_rows())) {
    if (HasGradRows(ctx) ? ctx.In("GradRows").numel() == 0 : g->rows().rows.empty())
      return CopyAll(ctx);
    // Paddle steps the powers before it uses them here; that shows where they are one variable.
    const bool steps = !ctx.Bool("use_global_beta_pow");
    if (steps && ctx.Bool("rewrites:Beta1Pow")) pow1 = Step<T>(pow1, beta1);
    if (steps && ctx.Bool("rewrites:Beta2Pow")) pow2 = Step<T>(pow2, beta2);
  }
  // As on Paddle's CPU, lr_ratio is in the decay alone, not in the step.
  const double keep = 1 - rate * lr_ratio * coeff;
  const AdamRule rule = MakeRule(beta1, beta2, epsilon, pow1, pow2, rate, keep);
  const bool lazy = ctx.Bool("lazy_mode");
  HEDDLE_ASSIGN_OR_RETURN(const auto grad, Gradient<T>::Of(ctx, ctx.InVar("Grad"), param, lazy));
  Tensor &p_out = ctx.Out("ParamOut"), &m_out = ctx.Out("Moment1Out"),
         &v_out = ctx.Out("Moment2Out");
  const Tensor &m = ctx.In("Moment1"), &v = ctx.In("Moment2");
  if (lazy && !grad.dense()) {
    CopyWhenApart(param, p_out);
    CopyWhenApart(m, m_out);
    CopyWhenApart(v, v_out);
  }
  const Span<T> run{param.data<T>(),
                    m.data<T>(),
                    v.data<T>(),
                    p_out.mutable_data<T>(),
                    m_out.mutable_data<T>(),
                    v_out.mutable_data<T>()};
  // Rows that selected rows leave out are updated with an epsilon that is not bias-corrected, as in
  // Paddle.
  AdamRule rest = rule;
  rest.epsilon = epsilon;
  grad.ForEach(ctx, [&](int64_t at, int64_t n, const T* part) {
    AdamUpdate(grad.Absent(part) ? rest : rule, run.From(at), n, part);
  });
  if (!ctx.Bool("use_global_beta_pow")) {
    WritePow(ctx, "Beta1Pow", "Beta1PowOut", beta1);
    WritePow(ctx, "Beta2Pow", "Beta2PowOut", beta2);
    return Status::Ok();
  }
  if (ctx.Bool("rewrites:Beta1Pow")) CopyWhenApart(ctx.In("Beta1Pow"), ctx.Out("Beta1PowOut"));
  if (ctx.Bool("rewrites:Beta2Pow")) CopyWhenApart(ctx.In("Beta2Pow"), ctx.Out("Beta2PowOut"));
  return Status::Ok();
}

template <typename T>
struct Adam {
  static Status Run(KernelContext& ctx) { return RunAdam<T>(ctx, 1.0, 0.0); }
};
template <typename T>
struct AdamW {
  static Status Run(KernelContext& ctx) {
    return RunAdam<T>(ctx, ctx.Float("lr_ratio"), ctx.Bool("with_decay") ? ctx.Float("coeff") : 0);
  }
};

constexpr KeyPair kMergedPairs[] = {{"Param", "ParamOut"},
                                    {"Moment1", "Moment1Out"},
                                    {"Moment2", "Moment2Out"},
                                    {"Beta1Pow", "Beta1PowOut"},
                                    {"Beta2Pow", "Beta2PowOut"}};

Status InferMergedAdam(ShapeContext& ctx) {
  const int count = ctx.InCount("Param");
  const int rates = ctx.InCount("LearningRate");
  if (rates != 1 && rates != count)
    return InvalidArgument("LearningRate must be one or one per Param");
  if (ctx.InCount("Grad") != count) return InvalidArgument("Grad must be one per Param");
  for (const KeyPair& pair : kMergedPairs) {
    if (ctx.InCount(pair.in) != count)
      return InvalidArgument(pair.in.name, " must be one per Param");
    for (int i = 0; i < count; ++i)
      ctx.SetOut(pair.out, ctx.InShape(pair.in, i), ctx.InDType(pair.in, i), i);
  }
  for (int i = 0; i < count; ++i) {
    const Shape& p = ctx.InShape("Param", i);
    for (Key key : {Key("Grad"), Key("Moment1"), Key("Moment2")}) {
      const Shape& s = ctx.InShape(key, i);
      if (s.is_static() && p.is_static() && s.numel() != p.numel())
        return InvalidArgument(key.name, "[", i, "] ", s.ToString(), " must fit Param ",
                               p.ToString());
      if (ctx.InDType(key, i) != ctx.InDType("Param", i))
        return InvalidArgument(key.name, "[", i, "] must have the dtype of Param");
    }
  }
  SetMastersLike(ctx);
  return Status::Ok();
}

template <typename T>
Status CheckScalar(const Tensor& t, const char* name) {
  if (t.numel() == 1 && t.dtype() == kDTypeOf<T>) return Status::Ok();
  return InvalidArgument(name, " must hold one value of Param's dtype");
}

template <typename T>
struct MergedAdam {
  static Status Run(KernelContext& ctx) {
    const bool one_rate = ctx.InCount("LearningRate") == 1;
    const int count = ctx.InCount("Param");
    for (int i = 0; i < count; ++i) {
      HEDDLE_RETURN_IF_ERROR(
          CheckScalar<T>(ctx.In("LearningRate", one_rate ? 0 : i), "LearningRate"));
      HEDDLE_RETURN_IF_ERROR(CheckScalar<T>(ctx.In("Beta1Pow", i), "Beta1Pow"));
      HEDDLE_RETURN_IF_ERROR(CheckScalar<T>(ctx.In("Beta2Pow", i), "Beta2Pow"));
    }
    for (int i = 0; i < count; ++i) UpdateOne(ctx, i, one_rate ? 0 : i);
    return Status::Ok();
  }

  static void UpdateOne(KernelContext& ctx, int i, int rate) {
    const double beta1 = ctx.Float("beta1"), beta2 = ctx.Float("beta2");
    const T pow1 = *ctx.In("Beta1Pow", i).template data<T>();
    const T pow2 = *ctx.In("Beta2Pow", i).template data<T>();
    const T lr = *ctx.In("LearningRate", rate).template data<T>();
    const AdamRule rule = MakeRule(beta1, beta2, ctx.Float("epsilon"), static_cast<double>(pow1),
                                   static_cast<double>(pow2), static_cast<double>(lr), 1.0);
    const Tensor& param = ctx.In("Param", i);
    const Span<T> run{param.data<T>(),
                      ctx.In("Moment1", i).template data<T>(),
                      ctx.In("Moment2", i).template data<T>(),
                      ctx.Out("ParamOut", i).template mutable_data<T>(),
                      ctx.Out("Moment1Out", i).template mutable_data<T>(),
                      ctx.Out("Moment2Out", i).template mutable_data<T>()};
    const T* g = ctx.In("Grad", i).template data<T>();
    ctx.ParallelFor(param.numel(), 16384,
                    [&](int64_t b, int64_t e) { AdamUpdate(rule, run.From(b), e - b, g + b); });
    const bool global = ctx.Bool("use_global_beta_pow");
    *ctx.Out("Beta1PowOut", i).template mutable_data<T>() =
        global ? pow1 : pow1 * static_cast<T>(beta1);
    *ctx.Out("Beta2PowOut", i).template mutable_data<T>() =
        global ? pow2 : pow2 * static_cast<T>(beta2);
  }
};

void Declare(OpDef& op) {
  op.Input("Param")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("LearningRate")
      .Input("Moment1")
      .Input("Moment2")
      .Input("Beta1Pow")
      .Input("Beta2Pow")
      .Input("MasterParam", kOptional)
      .Input("SkipUpdate", kOptional)
      .Input("Beta1Tensor", kOptional)
      .Input("Beta2Tensor", kOptional)
      .Input("EpsilonTensor", kOptional)
      .Input("GradRows", kOptional)
      .Output("ParamOut")
      .Output("Moment1Out")
      .Output("Moment2Out")
      .Output("Beta1PowOut")
      .Output("Beta2PowOut")
      .Output("MasterParamOut", kOptional)
      .Attr("beta1", 0.9f)
      .Attr("beta2", 0.999f)
      .Attr("epsilon", 1e-8f)
      .Attr("lazy_mode", false)
      .Attr("min_row_size_to_use_multithread", 1000)
      .Attr("multi_precision", false)
      .Attr("use_global_beta_pow", false)
      .Inplace("Param", "ParamOut")
      .Inplace("Moment1", "Moment1Out")
      .Inplace("Moment2", "Moment2Out")
      .Inplace("Beta1Pow", "Beta1PowOut")
      .Inplace("Beta2Pow", "Beta2PowOut")
      .Attr("rewrites:Beta1Pow", false)
      .Attr("rewrites:Beta2Pow", false)
      .InferShape(InferAdam);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(adam) {
  Declare(op);
  op.Doc("Adam with bias-corrected moments").Kernels<KeepsMaster<Adam>::Kernel, float, double>();
}

HEDDLE_OP(adamw) {
  Declare(op);
  op.Doc("Adam with decoupled weight decay")
      .Attr("lr_ratio", 1.0)
      .Attr("coeff", 0.01f)
      .Attr("with_decay", false)
      .Kernels<KeepsMaster<AdamW>::Kernel, float, double>();
}

HEDDLE_OP(merged_adam) {
  op.Doc("adam for a list of parameters")
      .Input("Param", kList)
      .Input("Grad", kList)
      .Input("LearningRate", kList)
      .Input("Moment1", kList)
      .Input("Moment2", kList)
      .Input("Beta1Pow", kList)
      .Input("Beta2Pow", kList)
      .Input("MasterParam", kList | kOptional)
      .Output("ParamOut", kList)
      .Output("Moment1Out", kList)
      .Output("Moment2Out", kList)
      .Output("Beta1PowOut", kList)
      .Output("Beta2PowOut", kList)
      .Output("MasterParamOut", kList | kOptional)
      .Attr("beta1", 0.9f)
      .Attr("beta2", 0.999f)
      .Attr("epsilon", 1e-8f)
      .Attr("multi_precision", false)
      .Attr("use_global_beta_pow", false)
      .InferShape(InferMergedAdam)
      .Kernels<KeepsMaster<MergedAdam>::Kernel, float, double>();
}

HEDDLE_EXAMPLES(adam, R"(
example rows as tensors
in Param float32 [3, 2] -0.31 -0.08 -0.11 0.35 0.55 0.7
in Grad float32 [2, 2] -0.24 0.59 -0.75 0.31
in GradRows int64 [2] 2 0
in LearningRate float32 [1] 0.1
in Moment1 float32 [3, 2] 0.44 -0.98 -0.32 0.35 0.5 0.21
in Moment2 float32 [3, 2] 0.13 0.02 0 0.89 0.13 0.38
in Beta1Pow float32 [1] 0.9
in Beta2Pow float32 [1] 0.99
out ParamOut=Param float32 [3, 2] -0.35904068 0.2513861 1589047.4 0.3315678 0.48479164 0.67780155
out Moment1Out=Moment1 float32 [3, 2] 0.32099998 -0.85099995 -0.288 0.315 0.42599997 0.24800001
out Moment2Out=Moment2 float32 [3, 2] 0.13043249 0.0200761 0 0.88910997 0.12992759 0.37996808
out Beta1PowOut=Beta1Pow float32 [1] 0.80999994
out Beta2PowOut=Beta2Pow float32 [1] 0.98901004

example rows as tensors, with powers of their own
in Param float32 [3, 2] -0.31 -0.08 -0.11 0.35 0.55 0.7
in Grad float32 [2, 2] -0.24 0.59 -0.75 0.31
in GradRows int64 [2] 2 0
in LearningRate float32 [1] 0.1
in Moment1 float32 [3, 2] 0.44 -0.98 -0.32 0.35 0.5 0.21
in Moment2 float32 [3, 2] 0.13 0.02 0 0.89 0.13 0.38
in Beta1Pow float32 [1] 0.9
in Beta2Pow float32 [1] 0.99
out ParamOut=Param float32 [3, 2] -0.39888158 0.52060586 2879997.8 0.31659338 0.43181604 0.6597674
out Moment1Out=Moment1 float32 [3, 2] 0.32099998 -0.85099995 -0.288 0.315 0.42599997 0.24800001
out Moment2Out=Moment2 float32 [3, 2] 0.13043249 0.0200761 0 0.88910997 0.12992759 0.37996808
out Beta1PowOut float32 [1] 0.80999994
out Beta2PowOut float32 [1] 0.98901004

example rows as tensors, lazily
attr lazy_mode BOOLEAN true
in Param float32 [3, 2] 0.3 0.21 0.41 0.56 0.16 0.44
in Grad float32 [2, 2] -0.11 -0.6 -0.02 -0.18
in GradRows int64 [2] 2 0
in LearningRate float32 [1] 0.1
in Moment1 float32 [3, 2] -0.72 -0.9 0.9 -0.66 0.4 -0.17
in Moment2 float32 [3, 2] 0.67 0.7 0.62 0.87 0.88 0.36
in Beta1Pow float32 [1] 0.9
in Beta2Pow float32 [1] 0.99
out ParamOut=Param float32 [3, 2] 0.34383667 0.2646302 0.41 0.56 0.13946272 0.45958722
out Moment1Out=Moment1 float32 [3, 2] -0.65 -0.82799995 0.9 -0.66 0.34899998 -0.21300001
out Moment2Out=Moment2 float32 [3, 2] 0.6693304 0.6993324 0.62 0.87 0.8791321 0.36
out Beta1PowOut=Beta1Pow float32 [1] 0.80999994
out Beta2PowOut=Beta2Pow float32 [1] 0.98901004

example rows
in Param float32 [3, 2] -0.31 -0.08 -0.11 0.35 0.55 0.7
in Grad float32 [2, 2] rows [2, 0] height 3 -0.24 0.59 -0.75 0.31
in LearningRate float32 [1] 0.1
in Moment1 float32 [3, 2] 0.44 -0.98 -0.32 0.35 0.5 0.21
in Moment2 float32 [3, 2] 0.13 0.02 0 0.89 0.13 0.38
in Beta1Pow float32 [1] 0.9
in Beta2Pow float32 [1] 0.99
out ParamOut=Param float32 [3, 2] -0.35904068 0.2513861 1589047.4 0.3315678 0.48479164 0.67780155
out Moment1Out=Moment1 float32 [3, 2] 0.32099998 -0.85099995 -0.288 0.315 0.42599997 0.24800001
out Moment2Out=Moment2 float32 [3, 2] 0.13043249 0.0200761 0 0.88910997 0.12992759 0.37996808
out Beta1PowOut=Beta1Pow float32 [1] 0.80999994
out Beta2PowOut=Beta2Pow float32 [1] 0.98901004

example rows, with powers of their own
in Param float32 [3, 2] -0.31 -0.08 -0.11 0.35 0.55 0.7
in Grad float32 [2, 2] rows [2, 0] height 3 -0.24 0.59 -0.75 0.31
in LearningRate float32 [1] 0.1
in Moment1 float32 [3, 2] 0.44 -0.98 -0.32 0.35 0.5 0.21
in Moment2 float32 [3, 2] 0.13 0.02 0 0.89 0.13 0.38
in Beta1Pow float32 [1] 0.9
in Beta2Pow float32 [1] 0.99
out ParamOut=Param float32 [3, 2] -0.39888158 0.52060586 2879997.8 0.31659338 0.43181604 0.6597674
out Moment1Out=Moment1 float32 [3, 2] 0.32099998 -0.85099995 -0.288 0.315 0.42599997 0.24800001
out Moment2Out=Moment2 float32 [3, 2] 0.13043249 0.0200761 0 0.88910997 0.12992759 0.37996808
out Beta1PowOut float32 [1] 0.80999994
out Beta2PowOut float32 [1] 0.98901004

example use_global_beta_pow, on variables that are rewritten
attr use_global_beta_pow BOOLEAN true
in Beta1Pow float32 [1] 0.9
in Beta2Pow float32 [1] 0.99
in Grad float32 [2] 0.5 -0.25
in LearningRate float32 [1] 0.01
in Moment1 float32 [2] 0.84 0.82
in Moment2 float32 [2] 0.69 0.62
in Param float32 [2] 0.79 0.36
out ParamOut=Param float32 [2] 0.7802938 0.35094085
out Moment1Out=Moment1 float32 [2] 0.806 0.71299994
out Moment2Out=Moment2 float32 [2] 0.68956 0.6194425
out Beta1PowOut=Beta1Pow float32 [1] 0.9
out Beta2PowOut=Beta2Pow float32 [1] 0.99

example rows, lazily
attr lazy_mode BOOLEAN true
in Param float32 [3, 2] 0.3 0.21 0.41 0.56 0.16 0.44
in Grad float32 [2, 2] rows [2, 0] height 3 -0.11 -0.6 -0.02 -0.18
in LearningRate float32 [1] 0.1
in Moment1 float32 [3, 2] -0.72 -0.9 0.9 -0.66 0.4 -0.17
in Moment2 float32 [3, 2] 0.67 0.7 0.62 0.87 0.88 0.36
in Beta1Pow float32 [1] 0.9
in Beta2Pow float32 [1] 0.99
out ParamOut=Param float32 [3, 2] 0.34383667 0.2646302 0.41 0.56 0.13946272 0.45958722
out Moment1Out=Moment1 float32 [3, 2] -0.65 -0.82799995 0.9 -0.66 0.34899998 -0.21300001
out Moment2Out=Moment2 float32 [3, 2] 0.6693304 0.6993324 0.62 0.87 0.8791321 0.36
out Beta1PowOut=Beta1Pow float32 [1] 0.80999994
out Beta2PowOut=Beta2Pow float32 [1] 0.98901004

example float32 2
in Beta1Pow float32 [1] 0.9
in Beta2Pow float32 [1] 0.999
in Grad float32 [2] 0.5 0.5
in LearningRate float32 [] 0.001
in Moment1 float32 [2] 0.84 0.82
in Moment2 float32 [2] 0.69 0.62
in Param float32 [2] 0.79 0.36
out Beta1PowOut float32 [1] 0.80999994
out Beta2PowOut float32 [1] 0.99800104
out Moment1Out float32 [2] 0.806 0.788
out Moment2Out float32 [2] 0.68956 0.61963
out ParamOut float32 [2] 0.78969306 0.35968345

example float32 4x3, use_global_beta_pow
attr use_global_beta_pow BOOLEAN true
in Beta1Pow float32 [1] 0.197
in Beta1Tensor float32 [1] 0.85
in Beta2Pow float32 [1] 0.599
in Beta2Tensor float32 [1] 0.95
in EpsilonTensor float32 [1] 1e-08
in Grad float32 [4, 3] 0.08 0.23 -0.69 -0.23 -0.85 -0.54 0.85 -0.08 0.54 -0.38 0.38 0.69
in LearningRate float32 [1] 0.001
in Moment1 float32 [4, 3] 0.69 -0.85 -0.69 0.38 0.08 -0.54 -0.38 0.54 -0.08 -0.23 0.85 0.23
in Moment2 float32 [4, 3] 0.154 0.385 0.923 0.692 0.846 0.462 0.231 0.538 0.769 0.308 0.615 0.077
in Param float32 [4, 3] 0.08 -0.23 -0.08 -0.54 0.54 0.69 -0.69 0.85 0.38 -0.38 -0.85 0.23
out Beta1PowOut ?
out Beta2PowOut ?
out Moment1Out float32 [4, 3] 0.5985 -0.688 -0.69 0.2885 -0.05949998 -0.54 -0.19550003 0.44700003
  0.012999989 -0.2525 0.7795 0.299
out Moment2Out float32 [4, 3] 0.14662 0.36839497 0.900655 0.66004497 0.83982503 0.45348 0.255575
  0.51142 0.74513 0.29982 0.59147 0.096955
out ParamOut float32 [4, 3] 0.07876739 -0.2291061 -0.07942664 -0.54028004 0.5400512 0.69063234
  -0.68969506 0.8495071 0.3799881 -0.37963635 -0.8507993 0.22924274

example float64 2
in Beta1Pow float64 [1] 0.9
in Beta2Pow float64 [1] 0.999
in Grad float64 [2] 0.5 0.5
in LearningRate float64 [] 0.001
in Moment1 float64 [2] 0.84 0.82
in Moment2 float64 [2] 0.69 0.62
in Param float64 [2] 0.79 0.36
out Beta1PowOut float64 [1] 0.8099999785423279
out Beta2PowOut float64 [1] 0.9980010128617287
out Moment1Out float64 [2] 0.8059999918937683 0.7879999923706055
out Moment2Out float64 [2] 0.6895600056648253 0.6196300047636032
out ParamOut float64 [2] 0.789693063168926 0.3596834371164435
)")

HEDDLE_EXAMPLES(adamw, R"(


example float32 4, with_decay
attr with_decay BOOLEAN true
in Beta1Pow float32 [1] 0.9
in Beta1Tensor float32 [1] 0.85
in Beta2Pow float32 [1] 0.999
in Beta2Tensor float32 [1] 0.95
in Grad float32 [4] 0.25*4
in LearningRate float32 [] 1e-05
in Moment1 float32 [4] 0.91 0.55 0.68 0.83
in Moment2 float32 [4] 0.81 0.74 0.2 0.32
in Param float32 [4] 0.62 0.57 0.71 0.89
out Beta1PowOut float32 [1] 0.765
out Beta2PowOut float32 [1] 0.94905
out Moment1Out float32 [4] 0.811 0.505 0.6155 0.74300003
out Moment2Out float32 [4] 0.772625 0.706125 0.193125 0.307125
out ParamOut float32 [4] 0.619997 0.569998 0.7099955 0.8899957

example float32 4x3, beta1 0.78, beta2 0.836, coeff 0.5, epsilon 0.0001, with_decay
attr beta1 FLOAT 0.78
attr beta2 FLOAT 0.836
attr coeff FLOAT 0.5
attr epsilon FLOAT 0.0001
attr with_decay BOOLEAN true
in Beta1Pow float32 [1] 0.0834
in Beta2Pow float32 [1] 0.167
in Grad float32 [4, 3] 0.23 -0.08 -0.85 0.85 0.08 -0.54 0.38 -0.69 -0.23 0.69 0.54 -0.38
in LearningRate float32 [1] 0.004
in Moment1 float32 [4, 3] 0.38 0.54 -0.69 0.69 -0.08 -0.54 -0.38 -0.23 -0.85 0.08 0.23 0.85
in Moment2 float32 [4, 3] 0.846 0.308 0.769 0.154 0.615 0.538 0.923 0.231 0.692 0.385 0.077 0.462
in Param float32 [4, 3] 0.85 -0.85 0.08 0.69 0.54 -0.54 -0.23 -0.08 0.38 -0.38 -0.69 0.23
out Beta1PowOut float32 [1] 0.065052
out Beta2PowOut float32 [1] 0.139612
out Moment1Out float32 [4, 3] 0.347 0.4036 -0.7252 0.7252 -0.04479999 -0.54 -0.21279997 -0.3312
  -0.7136 0.21420002 0.2982 0.5794
out Moment2Out float32 [4, 3] 0.7159316 0.25853762 0.761374 0.24723399 0.5151896 0.4975904 0.7953096
  0.2711964 0.5871876 0.3999404 0.112194404 0.4099136
out ParamOut float32 [4, 3] 0.8466668 -0.85146093 0.0831499 0.682812 0.5391686 -0.53587145
  -0.2285897 -0.07730735 0.38294867 -0.38058886 -0.6921649 0.2259361

example float64 4, with_decay
attr with_decay BOOLEAN true
in Beta1Pow float64 [1] 0.9
in Beta1Tensor float64 [1] 0.85
in Beta2Pow float64 [1] 0.999
in Beta2Tensor float64 [1] 0.95
in Grad float64 [4] 0.25*4
in LearningRate float64 [] 1e-05
in Moment1 float64 [4] 0.91 0.55 0.68 0.83
in Moment2 float64 [4] 0.81 0.74 0.2 0.32
in Param float64 [4] 0.62 0.57 0.71 0.89
out Beta1PowOut float64 [1] 0.765
out Beta2PowOut float64 [1] 0.94905
out Moment1Out float64 [4] 0.8109999999999999 0.505 0.6155 0.7429999999999999
out Moment2Out float64 [4] 0.772625 0.706125 0.193125 0.307125
out ParamOut float64 [4] 0.6199970203279467 0.5699980425756612 0.7099954999680987 0.8899956713380586

example float32 4x3, beta1 0.78, beta2 0.836, coeff 0.5, epsilon 0.0001, with_decay, lr_ratio 0.0
attr beta1 FLOAT 0.78
attr beta2 FLOAT 0.836
attr coeff FLOAT 0.5
attr epsilon FLOAT 0.0001
attr with_decay BOOLEAN true
attr lr_ratio FLOAT 0.0
in Beta1Pow float32 [1] 0.0834
in Beta2Pow float32 [1] 0.167
in Grad float32 [4, 3] 0.23 -0.08 -0.85 0.85 0.08 -0.54 0.38 -0.69 -0.23 0.69 0.54 -0.38
in LearningRate float32 [1] 0.004
in Moment1 float32 [4, 3] 0.38 0.54 -0.69 0.69 -0.08 -0.54 -0.38 -0.23 -0.85 0.08 0.23 0.85
in Moment2 float32 [4, 3] 0.846 0.308 0.769 0.154 0.615 0.538 0.923 0.231 0.692 0.385 0.077 0.462
in Param float32 [4, 3] 0.85 -0.85 0.08 0.69 0.54 -0.54 -0.23 -0.08 0.38 -0.38 -0.69 0.23
out Beta1PowOut float32 [1] 0.065052
out Beta2PowOut float32 [1] 0.139612
out Moment1Out float32 [4, 3] 0.347 0.4036 -0.7252 0.7252 -0.044799995 -0.54 -0.21279998 -0.3312
  -0.7136 0.21420002 0.2982 0.5794
out Moment2Out float32 [4, 3] 0.71593165 0.25853762 0.761374 0.24723399 0.51518965 0.4975904
  0.7953096 0.2711964 0.5871876 0.3999404 0.1121944 0.40991363
out ParamOut float32 [4, 3] 0.8483668 -0.853161 0.083309904 0.684192 0.5402486 -0.5369514 -0.2290497
  -0.07746735 0.38370866 -0.38134885 -0.6935449 0.2263961
)")

HEDDLE_EXAMPLES(merged_adam, R"(
example float32
in Param float32 [2] -0.53 0.4
in Param float32 [3] -0.87 -0.73 -0.65
in Grad float32 [2] -0.13 -0.64
in Grad float32 [3] -0.04 0.22 0.71
in LearningRate float32 [1] 0.1
in LearningRate float32 [1] 0.2
in Moment1 float32 [2] -1 0.28
in Moment1 float32 [3] -0.89 -0.78 0.05
in Moment2 float32 [2] 0.21 0.26
in Moment2 float32 [3] 0.22 0.49 0.14
in Beta1Pow float32 [1] 0.9
in Beta1Pow float32 [1] 0.9
in Beta2Pow float32 [1] 0.99
in Beta2Pow float32 [1] 0.99
out ParamOut=Param.0 float32 [2] -0.33067554 0.3631408
out ParamOut=Param.1 float32 [3] -0.52657664 -0.5356269 -0.7119241
out Moment1Out=Moment1.0 float32 [2] -0.913 0.188
out Moment1Out=Moment1.1 float32 [3] -0.80499995 -0.67999995 0.11600001
out Moment2Out=Moment2.0 float32 [2] 0.20980689 0.2601496
out Moment2Out=Moment2.1 float32 [3] 0.21978159 0.48955843 0.1403641
out Beta1PowOut=Beta1Pow.0 float32 [1] 0.80999994
out Beta1PowOut=Beta1Pow.1 float32 [1] 0.80999994
out Beta2PowOut=Beta2Pow.0 float32 [1] 0.98901004
out Beta2PowOut=Beta2Pow.1 float32 [1] 0.98901004

example float64
in Param float64 [2] -0.31 -0.97
in Param float64 [3] -0.48 -0.72 -0.73
in Grad float64 [2] 0.2 0.52
in Grad float64 [3] -0.75 0.4 -0.39
in LearningRate float64 [1] 0.1
in LearningRate float64 [1] 0.2
in Moment1 float64 [2] -0.47 0.3
in Moment1 float64 [3] -0.47 0.84 0.39
in Moment2 float64 [2] 0.55 0.02
in Moment2 float64 [3] 0.69 0.45 0.11
in Beta1Pow float64 [1] 0.9
in Beta1Pow float64 [1] 0.9
in Beta2Pow float64 [1] 0.99
in Beta2Pow float64 [1] 0.99
out ParamOut=Param.0 float64 [2] -0.25563428186761245 -1.1962763200847248
out ParamOut=Param.1 float64 [3] -0.36008460935505465 -0.9573978507364495 -0.9181070742883396
out Moment1Out=Moment1.0 float64 [2] -0.40299998402595516 0.3220000052452088
out Moment1Out=Moment1.1 float64 [3] -0.4980000066757202 0.7959999895095825 0.31199998140335083
out Moment2Out=Moment2.0 float64 [2] 0.5494900065660477 0.02025039677619934
out Moment2Out=Moment2.1 float64 [3] 0.6898725016415118 0.44971000373363496 0.1100420994579792
out Beta1PowOut=Beta1Pow.0 float64 [1] 0.8099999785423279
out Beta1PowOut=Beta1Pow.1 float64 [1] 0.8099999785423279
out Beta2PowOut=Beta2Pow.0 float64 [1] 0.9890100127458572
out Beta2PowOut=Beta2Pow.1 float64 [1] 0.9890100127458572
)")

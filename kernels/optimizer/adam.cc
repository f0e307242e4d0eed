// adam, adamw and merged_adam.
#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

struct AdamRule {
  double beta1, beta2, epsilon;
  double step;  // learning rate with both bias corrections
  double keep;  // factor of the decoupled weight decay, 1 for none
  bool nesterov = false;
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
  const T* most = nullptr;  // of AMSGrad: the greatest second moment so far
  T* most_out = nullptr;
  Span From(int64_t at) const {
    return {p + at,
            m + at,
            v + at,
            p_out + at,
            m_out + at,
            v_out + at,
            most != nullptr ? most + at : nullptr,
            most != nullptr ? most_out + at : nullptr};
  }
};

template <typename T, bool kMost, bool kNesterov>
void AdamElements(const AdamRule& rule, const Span<T>& r, int64_t n, const T* g) {
  using C = ComputeType<T>;
  const C beta1 = static_cast<C>(rule.beta1), beta2 = static_cast<C>(rule.beta2);
  const C one1 = C(1) - beta1, one2 = C(1) - beta2;
  const C step = static_cast<C>(rule.step), eps = static_cast<C>(rule.epsilon);
  const C keep = static_cast<C>(rule.keep);
  const auto [p, m, v, p_out, m_out, v_out, most, most_out] = r;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C grad = static_cast<C>(g[i]);
    const C m_new = beta1 * static_cast<C>(m[i]) + one1 * grad;
    const C v_new = beta2 * static_cast<C>(v[i]) + one2 * grad * grad;
    C size = v_new;
    if constexpr (kMost) {
      size = std::max(static_cast<C>(most[i]), v_new);
      most_out[i] = static_cast<T>(size);
    }
    m_out[i] = static_cast<T>(m_new);
    v_out[i] = static_cast<T>(v_new);
    const C ahead = kNesterov ? beta1 * m_new + one1 * grad : m_new;
    p_out[i] =
        static_cast<T>(keep * static_cast<C>(p[i]) - step * (ahead / (std::sqrt(size) + eps)));
  }
}
template <typename T>
void AdamUpdate(const AdamRule& rule, const Span<T>& r, int64_t n, const T* g) {
  const auto elements = r.most != nullptr ? rule.nesterov ? &AdamElements<T, true, true>
                                                          : &AdamElements<T, true, false>
                        : rule.nesterov ? &AdamElements<T, false, true>
                                          : &AdamElements<T, false, false>;
  elements(rule, r, n, g);
}

Status InferAdam(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(
      ctx, {{"Param", "ParamOut"}, {"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}},
      {{"Beta1Pow", "Beta1PowOut"}, {"Beta2Pow", "Beta2PowOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  if (ctx.Bool("use_global_beta_pow")) {  // left alone: an output of its own stays empty
    if (ctx.HasOut("Beta1PowOut") && !ctx.Bool("rewrites:Beta1Pow"))
      ctx.SetOut("Beta1PowOut", Shape{0}, ctx.InDType("Beta1Pow"));
    if (ctx.HasOut("Beta2PowOut") && !ctx.Bool("rewrites:Beta2Pow"))
      ctx.SetOut("Beta2PowOut", Shape{0}, ctx.InDType("Beta2Pow"));
  }
  return Status::Ok();
}

Status InferAdamOrAmsgrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferAdam(ctx));
  if (ctx.HasIn("Moment2Max") != ctx.HasOut("Moment2MaxOut"))
    return InvalidArgument("Moment2Max and Moment2MaxOut are given together or not at all");
  return InferUpdate(ctx, {{"Moment2Max", "Moment2MaxOut"}});
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
    if (ctx.HasOut(p.out) && ctx.Out(p.out).numel() > 0)
      CopyWhenApart(ctx.In(p.in), ctx.Out(p.out));
  return Status::Ok();
}

template <typename T>
double Step(double power, double factor) {
  using C = ComputeType<T>;
  return static_cast<double>(static_cast<C>(power) * static_cast<C>(factor));
}

// What adam has and adamw has not.
struct AdamForm {
  bool nesterov = false, epsilon_is_corrected = true;
  const Tensor* most = nullptr;  // the greatest second moment so far, of AMSGrad
  Tensor* most_out = nullptr;
};

template <typename T>
Status RunAdam(KernelContext& ctx, const AdamForm& form, double lr_ratio, double coeff) {
  HEDDLE_RETURN_IF_ERROR(CheckMasters(ctx));
  const auto copy_all = [&] {
    if (form.most != nullptr) CopyWhenApart(*form.most, *form.most_out);
    return CopyAll(ctx);
  };
  if (Flag(ctx, "SkipUpdate")) return copy_all();
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
      return copy_all();
    // Paddle steps the powers before it uses them here; that shows where they are one variable.
    const bool steps = !ctx.Bool("use_global_beta_pow");
    if (steps && ctx.Bool("rewrites:Beta1Pow")) pow1 = Step<T>(pow1, beta1);
    if (steps && ctx.Bool("rewrites:Beta2Pow")) pow2 = Step<T>(pow2, beta2);
  }
  // As on Paddle's CPU, lr_ratio is in the decay alone, not in the step.
  const double keep = 1 - rate * lr_ratio * coeff;
  AdamRule rule = MakeRule(beta1, beta2, epsilon, pow1, pow2, rate, keep);
  rule.nesterov = form.nesterov;
  if (!form.epsilon_is_corrected) rule.epsilon = epsilon;
  const bool lazy = ctx.Bool("lazy_mode");
  HEDDLE_ASSIGN_OR_RETURN(const auto grad, Gradient<T>::Of(ctx, ctx.InVar("Grad"), param, lazy));
  Tensor &p_out = ctx.Out("ParamOut"), &m_out = ctx.Out("Moment1Out"),
         &v_out = ctx.Out("Moment2Out");
  const Tensor &m = ctx.In("Moment1"), &v = ctx.In("Moment2");
  if (grad.keeps_rest()) {
    CopyWhenApart(param, p_out);
    CopyWhenApart(m, m_out);
    CopyWhenApart(v, v_out);
    if (form.most != nullptr) CopyWhenApart(*form.most, *form.most_out);
  }
  const Span<T> run{param.data<T>(),
                    m.data<T>(),
                    v.data<T>(),
                    p_out.mutable_data<T>(),
                    m_out.mutable_data<T>(),
                    v_out.mutable_data<T>(),
                    form.most != nullptr ? form.most->data<T>() : nullptr,
                    form.most != nullptr ? form.most_out->mutable_data<T>() : nullptr};
  // Rows that selected rows leave out are updated with an epsilon that is not bias-corrected, as in
  // Paddle.
  AdamRule rest = rule;
  rest.epsilon = epsilon;
  grad.ForEach(ctx, [&](int64_t at, int64_t n, const T* part) {
    AdamUpdate(grad.Absent(part) ? rest : rule, run.From(at), n, part);
  });
  if (!ctx.Bool("use_global_beta_pow")) {
    if (!ctx.HasOut("Beta1PowOut") || !ctx.HasOut("Beta2PowOut"))
      return InvalidArgument("Beta1PowOut and Beta2PowOut are needed without use_global_beta_pow");
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
  static Status Run(KernelContext& ctx) {
    return RunAdam<T>(ctx,
                      {ctx.Bool("use_nesterov"), ctx.Bool("epsilon_is_corrected"),
                       ctx.InOpt("Moment2Max"), ctx.OutOpt("Moment2MaxOut")},
                      1.0, 0.0);
  }
};
template <typename T>
struct AdamW {
  static Status Run(KernelContext& ctx) {
    return RunAdam<T>(ctx, {}, ctx.Float("lr_ratio"),
                      ctx.Bool("with_decay") ? ctx.Float("coeff") : 0);
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

void DeclareAdam(OpDef& op) {
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
      .Output("Beta1PowOut", kOptional)
      .Output("Beta2PowOut", kOptional)
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
  DeclareAdam(op);
  op.Input("Moment2Max", kOptional).Output("Moment2MaxOut", kOptional);
  op.Inplace("Moment2Max", "Moment2MaxOut").InferShape(InferAdamOrAmsgrad);
  op.Attr("use_nesterov", false);
  op.Attr("epsilon_is_corrected", true);  // times the root that corrects the second moment
  op.Doc("Adam with bias-corrected moments; with Moment2Max AMSGrad's steps (Reddi et al., 2018)");
  op.Kernels<KeepsMaster<Adam>::Kernel, float, double, float16, bfloat16>();
}

HEDDLE_OP(adamw) {
  DeclareAdam(op);
  op.Doc("Adam with decoupled weight decay")
      .Attr("lr_ratio", 1.0)
      .Attr("coeff", 0.01f)
      .Attr("with_decay", false)
      .Kernels<KeepsMaster<AdamW>::Kernel, float, double, float16, bfloat16>();
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

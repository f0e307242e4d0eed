// nce: noise-contrastive estimation, a softmax loss over the true classes and a few drawn ones.
#include <algorithm>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/slot_kinds.h"
#include "kernels/linalg/linalg.h"
#include "kernels/random/random.h"

namespace heddle {
namespace {

// Draws noise classes and knows their probabilities.
class Sampler {
 public:
  static Result<Sampler> Of(const KernelContext& ctx) {
    Sampler s;
    s.kind_ = ctx.Int("sampler");
    s.classes_ = ctx.Int("num_total_classes");
    if (s.classes_ < 1) return InvalidArgument("num_total_classes is ", s.classes_);
    if (s.kind_ < 0 || s.kind_ > 2) return InvalidArgument("no sampler ", s.kind_);
    if (s.kind_ < 2) return s;
    const Tensor *p = ctx.InOpt("CustomDistProbs"), *alias = ctx.InOpt("CustomDistAlias"),
                 *alias_p = ctx.InOpt("CustomDistAliasProbs");
    for (const Tensor* t : {p, alias, alias_p})
      if (t == nullptr || t->numel() != s.classes_)
        return InvalidArgument("sampler 2 needs CustomDist operands with a value for each class");
    if (p->dtype() != DType::kF32 || alias->dtype() != DType::kI32 ||
        alias_p->dtype() != DType::kF32)
      return InvalidArgument("CustomDist operands must be float32, int32 and float32");
    s.p_ = p->data<float>(), s.alias_ = alias->data<int32_t>(), s.alias_p_ = alias_p->data<float>();
    for (int64_t i = 0; i < s.classes_; ++i)
      if (s.alias_[i] >= s.classes_)
        return InvalidArgument("CustomDistAlias names class ", s.alias_[i]);
    return s;
  }
  double Probability(int64_t c) const {
    const auto n = static_cast<double>(classes_);
    if (kind_ == 0) return static_cast<float>(1.0 / n);
    if (kind_ == 2) return p_[c];
    const auto v = static_cast<double>(c);
    return static_cast<float>(std::log((v + 2) / (v + 1)) / std::log(n));
  }
  int64_t Draw(std::mt19937_64& engine) const {
    std::uniform_int_distribution<> any(0, static_cast<int>(classes_ - 1));
    if (kind_ == 0) return any(engine);
    if (kind_ == 1) {
      const float u = std::uniform_real_distribution<float>(0, 1)(engine);
      const float range = std::log(static_cast<float>(classes_));
      return (static_cast<int64_t>(std::exp(u * range)) - 1) % classes_;
    }
    const int at = any(engine);
    const float u = std::uniform_real_distribution<float>(0, 1)(engine);
    return u < alias_p_[at] || alias_[at] < 0 ? at : alias_[at];
  }

 private:
  int64_t kind_ = 0, classes_ = 1;
  const float *p_ = nullptr, *alias_p_ = nullptr;
  const int32_t* alias_ = nullptr;
};

int64_t TrueClasses(const Shape& label) { return label.rank() == 2 ? label[1] : 1; }
int64_t NoiseClasses(const OpContext& ctx) {
  const Ints& fixed = ctx.IntList("custom_neg_classes");
  return fixed.empty() ? ctx.Int("num_neg_samples") : static_cast<int64_t>(fixed.size());
}

Status CheckShapes(const ShapeContext& ctx) {
  const Shape &x = ctx.InShape("Input"), &w = ctx.InShape("Weight"), &label = ctx.InShape("Label");
  if (x.rank() != 2 || w.rank() != 2 || x[1] != w[1] || w[0] != ctx.Int("num_total_classes"))
    return InvalidArgument("Input ", x.ToString(), " and Weight ", w.ToString(),
                           " do not fit each other or num_total_classes");
  if (label.rank() < 1 || label.rank() > 2 || label[0] != x[0] || NoiseClasses(ctx) < 0)
    return InvalidArgument("Label has shape ", label.ToString(), ", Input ", x.ToString());
  if (ctx.HasIn("Bias") && ctx.InShape("Bias").is_static() && ctx.InShape("Bias").numel() != w[0])
    return InvalidArgument("Bias has shape ", ctx.InShape("Bias").ToString());
  if (ctx.HasIn("SampleWeight") && ctx.InShape("SampleWeight").is_static() &&
      ctx.InShape("SampleWeight").numel() != x[0])
    return InvalidArgument("SampleWeight has shape ", ctx.InShape("SampleWeight").ToString());
  return Status::Ok();
}

Status NceShape(ShapeContext& ctx) {
  for (Key key : {Key("Input"), Key("Weight"), Key("Label")})
    if (!ctx.InShape(key).is_static()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckShapes(ctx));
  const int64_t n = ctx.InShape("Input")[0];
  const int64_t width = TrueClasses(ctx.InShape("Label")) + NoiseClasses(ctx);
  ctx.SetOut("Cost", {n, 1}, ctx.InDType("Input"));
  if (ctx.HasOut("SampleLogits")) ctx.SetOut("SampleLogits", {n, width}, ctx.InDType("Input"));
  if (ctx.HasOut("SampleLabels")) ctx.SetOut("SampleLabels", {n, width}, DType::kI64);
  return Status::Ok();
}

template <typename T>
struct Nce {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("Input"), &w = ctx.In("Weight");
    const Labels label(ctx, ctx.In("Label"));
    const int64_t n = x.dim(0), d = x.dim(1), truths = TrueClasses(ctx.In("Label").shape());
    HEDDLE_RETURN_IF_ERROR(label.Check(n * truths, w.dim(0), 0));
    HEDDLE_ASSIGN_OR_RETURN(const Sampler sampler, Sampler::Of(ctx));
    const Ints& fixed = ctx.IntList("custom_neg_classes");
    for (int64_t c : fixed)
      if (c < 0 || c >= w.dim(0)) return InvalidArgument("custom_neg_classes names class ", c);
    const int64_t noise = NoiseClasses(ctx), width = truths + noise;
    const Tensor *bias = ctx.InOpt("Bias"), *weight = ctx.InOpt("SampleWeight");
    Tensor *logits = ctx.OutOpt("SampleLogits"), *classes = ctx.OutOpt("SampleLabels");
    T* cost = ctx.Out("Cost").template mutable_data<T>();
    OpRandom random(ctx, ctx.Int("seed"));
    for (const int64_t i : Watched(n)) {
      T sum = 0;
      for (int64_t k = 0; k < width; ++k) {
        const int64_t c = k < truths      ? label[i * truths + k]
                          : fixed.empty() ? sampler.Draw(*random)
                                          : fixed[static_cast<size_t>(k - truths)];
        T o = bias ? bias->data<T>()[c] : T(0);
        for (int64_t j = 0; j < d; ++j) o += x.data<T>()[i * d + j] * w.data<T>()[c * d + j];
        o = SigmoidOf(o);
        const T b = static_cast<T>(sampler.Probability(c) * static_cast<double>(noise));
        sum -= std::log((k < truths ? o : b) / (o + b));
        if (logits) logits->mutable_data<T>()[i * width + k] = o;
        if (classes) classes->mutable_data<int64_t>()[i * width + k] = c;
      }
      cost[i] = weight ? sum * weight->data<T>()[i] : sum;
    }
    return Status::Ok();
  }
};

Status NceGradShape(ShapeContext& ctx) {
  for (Key key : {Key("Input"), Key("Weight"), Key("Label"), Key("SampleLogits")})
    if (!ctx.InShape(key).is_static()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckShapes(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "SampleLogits", "SampleLabels"));
  const Shape& cost = ctx.InShape("Cost@GRAD");
  if (cost.is_static() && cost.numel() != ctx.InShape("Input")[0])
    return InvalidArgument("Cost@GRAD has shape ", cost.ToString(), ", Input ",
                           ctx.InShape("Input").ToString());
  if (ctx.InShape("SampleLogits").dim(0) != ctx.InShape("Input")[0])
    return InvalidArgument("SampleLogits has shape ", ctx.InShape("SampleLogits").ToString());
  if (ctx.Bool("is_sparse")) return ctx.Defer();  // the kernel makes selected rows
  SetOutsLike(ctx, {{"Input", "Input@GRAD"}, {"Weight", "Weight@GRAD"}});
  if (ctx.HasOut("Bias@GRAD")) SetOutsLike(ctx, {{"Bias", "Bias@GRAD"}});
  return Status::Ok();
}

template <typename T>
T* Zeroed(const KernelContext& ctx, Key slot, const Tensor* like) {
  if (like == nullptr || !ctx.HasOut(slot)) return nullptr;
  Tensor& t = ctx.Alloc(slot, kDTypeOf<T>, like->shape());
  WatchedFill(t.mutable_data<T>(), t.numel(), T(0));
  return t.mutable_data<T>();
}

// Rows of zeros for the classes, each once and in their order. `place` becomes the row of a class.
template <typename T>
T* ZeroedRows(const KernelContext& ctx, const Labels& classes, int64_t count, const Shape& weight,
              std::vector<int64_t>* place) {
  if (!ctx.HasOut("Weight@GRAD")) return nullptr;
  place->assign(static_cast<size_t>(weight[0]), -1);
  for (const int64_t i : Watched(count)) (*place)[static_cast<size_t>(classes[i])] = 0;
  SelectedRows rows{{}, weight[0], Tensor()};
  for (const int64_t c : Watched(weight[0])) {
    int64_t& at = (*place)[static_cast<size_t>(c)];
    if (at < 0) continue;
    at = std::ssize(rows.rows);
    rows.rows.push_back(c);
  }
  rows.value = ctx.Scratch(kDTypeOf<T>, Shape{std::ssize(rows.rows), weight[1]});
  T* data = rows.value.template mutable_data<T>();
  WatchedFill(data, rows.value.numel(), T(0));
  ctx.OutVar("Weight@GRAD")->mutable_rows() = std::move(rows);
  return data;
}

template <typename T>
struct NceGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("Input"), &w = ctx.In("Weight"), &kept = ctx.In("SampleLogits");
    const int64_t n = x.dim(0), d = x.dim(1), width = kept.dim(1);
    const int64_t truths = TrueClasses(ctx.In("Label").shape()), noise = NoiseClasses(ctx);
    HEDDLE_ASSIGN_OR_RETURN(const Sampler sampler, Sampler::Of(ctx));
    const Tensor* weight = ctx.InOpt("SampleWeight");
    const Labels classes(ctx, ctx.In("SampleLabels"));
    HEDDLE_RETURN_IF_ERROR(classes.Check(n * width, w.dim(0), 0));
    std::vector<int64_t> place;  // of a class's gradient, where only some have one
    T *dx = Zeroed<T>(ctx, "Input@GRAD", &x),
      *dw = ctx.Bool("is_sparse") ? ZeroedRows<T>(ctx, classes, n * width, w.shape(), &place)
                                  : Zeroed<T>(ctx, "Weight@GRAD", &w),
      *db = Zeroed<T>(ctx, "Bias@GRAD", ctx.InOpt("Bias"));
    const T* dcost = ctx.In("Cost@GRAD").template data<T>();
    for (const int64_t i : Watched(n))
      for (int64_t k = 0; k < width; ++k) {
        const int64_t c = classes[i * width + k];
        const T o = kept.data<T>()[i * width + k];
        const T b = static_cast<T>(sampler.Probability(c) * static_cast<double>(noise));
        T g = k < truths ? b / (o + b) * (o - T(1)) : o * (T(1) - o) / (o + b);
        g *= dcost[i] * (weight ? weight->data<T>()[i] : T(1));
        if (db) db[c] += g;
        const int64_t row = place.empty() ? c : place[static_cast<size_t>(c)];
        for (int64_t j = 0; j < d; ++j) {
          if (dw) dw[row * d + j] += g * x.data<T>()[i * d + j];
          if (dx) dx[i * d + j] += g * w.data<T>()[c * d + j];
        }
      }
    return Status::Ok();
  }
};

OpDef& Declare(OpDef& op) {
  op.Input("Input").Input("Label").Input("Weight").Input("Bias", kOptional);
  op.Input("SampleWeight", kOptional).Input("CustomDistProbs", kOptional);
  op.Input("CustomDistAlias", kOptional).Input("CustomDistAliasProbs", kOptional);
  op.Attr("num_total_classes", 0).Attr("num_neg_samples", 10).Attr("sampler", 0).Attr("seed", 0);
  return op.Attr("is_sparse", false).Attr("custom_neg_classes", Ints{}).Attr("is_test", false);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(nce) {
  Declare(op).Doc("noise-contrastive estimation").Output("Cost").Traits(kRandom);
  op.Output("SampleLogits", kOptional).Output("SampleLabels", kOptional).InferShape(NceShape);
  op.Kernels<Nce, float, double>();
}
HEDDLE_OP(nce_grad) {
  Declare(op).Input("SampleLogits").Input("SampleLabels").Input("Cost@GRAD");
  op.Output("Input@GRAD", kOptional).Output("Weight@GRAD", kOptional | kTakesRows);
  op.Output("Bias@GRAD", kOptional).InferShape(NceGradShape).Kernels<NceGrad, float, double>();
}

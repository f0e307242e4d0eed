// Support vector machines: sums of kernels, votes of pairs of classes, and the probabilities that
// are fitted to them.
#include <cmath>
#include <numeric>

#include "core/interrupts.h"
#include "kernels/estimators/scores.h"

namespace heddle {
namespace {

enum class SvmKernel { kLinear, kPoly, kRbf, kSigmoid };

struct Svm {
  SvmKernel kernel = SvmKernel::kLinear;
  float gamma = 0, shift = 0, degree = 0;
  std::vector<float> vectors, coefficients, rho;
  int64_t width = 0, count = 0;  // of support vectors

  float Product(const float* a, const float* b) const {
    float sum = 0;
    for (int64_t i = 0; i < width; ++i) {
      const float d = a[i] - b[i];
      sum += kernel == SvmKernel::kRbf ? d * d : a[i] * b[i];
    }
    switch (kernel) {
      case SvmKernel::kLinear:
        return sum;
      case SvmKernel::kPoly:
        return std::pow(gamma * sum + shift, degree);
      case SvmKernel::kRbf:
        return std::exp(-gamma * sum);
      case SvmKernel::kSigmoid:
        return std::tanh(gamma * sum + shift);
    }
    return 0;
  }
};

std::vector<float> FloatsOf(const OpContext& ctx, Key key) {
  const Floats& given = ctx.Attr<Floats>(key);
  return {given.begin(), given.end()};
}

Result<Svm> SvmOf(const OpContext& ctx, int64_t count, int64_t width) {
  Svm s;
  const std::string& kernel = ctx.Str("kernel_type");
  constexpr const char* kNames[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  size_t at = 0;
  while (at < std::size(kNames) && kernel != kNames[at]) ++at;
  if (at == std::size(kNames))
    return InvalidArgument("kernel_type is '", kernel, "', expected LINEAR, POLY, RBF or SIGMOID");
  s.kernel = static_cast<SvmKernel>(at);
  const std::vector<float> parameters = FloatsOf(ctx, "kernel_params");
  if (!parameters.empty() && parameters.size() != 3)
    return InvalidArgument("kernel_params has ", parameters.size(), " elements, expected 3");
  if (!parameters.empty()) {
    s.gamma = parameters[0];
    s.shift = parameters[1];
    s.degree = parameters[2];
  }
  s.vectors = FloatsOf(ctx, "support_vectors");
  s.coefficients = FloatsOf(ctx, "coefficients");
  s.rho = FloatsOf(ctx, "rho");
  s.width = width;
  s.count = count;
  if (s.rho.empty() || (count > 0 && static_cast<int64_t>(s.vectors.size()) != count * width))
    return InvalidArgument("has ", s.rho.size(), " rho and ", s.vectors.size(),
                           " elements of support vectors, expected ", count, " vectors of ", width,
                           " features");
  if (count == 0) s.kernel = SvmKernel::kLinear;
  return s;
}

struct SvmState final : KernelState {
  Svm svm;
};
using MakeSvm = Result<Svm> (*)(const OpContext& ctx, int64_t width);

template <MakeSvm kMake>
Result<std::unique_ptr<KernelState>> PrepareSvm(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(ctx.InShape("X")));
  auto state = std::make_unique<SvmState>();
  HEDDLE_ASSIGN_OR_RETURN(state->svm, kMake(ctx, s.width));
  return std::unique_ptr<KernelState>(std::move(state));
}

// The machine that Prepare made, or one made now in `*own`.
template <MakeSvm kMake>
Result<const Svm*> SvmIn(const KernelContext& ctx, int64_t width, Svm* own) {
  if (ctx.has_state()) return &ctx.State<SvmState>().svm;
  HEDDLE_ASSIGN_OR_RETURN(*own, kMake(ctx, width));
  return own;
}

Result<Svm> RegressorSvm(const OpContext& ctx, int64_t width) {
  const int64_t count = std::max<int64_t>(0, ctx.Int("n_supports"));
  HEDDLE_ASSIGN_OR_RETURN(Svm svm, SvmOf(ctx, count, width));
  if (static_cast<int64_t>(svm.coefficients.size()) != (count > 0 ? count : width))
    return InvalidArgument("coefficients has ", svm.coefficients.size(), " elements, expected ",
                           count > 0 ? count : width);
  return svm;
}

Status OnnxSvmRegressorShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(ctx.InShape("X")));
  HEDDLE_RETURN_IF_ERROR(PostTransformOf(ctx.Str("post_transform")).status());
  ctx.SetOut("Y", {s.rows, 1}, DType::kF32);
  return Status::Ok();
}

Status OnnxSvmRegressor(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(ctx.In("X").shape()));
  HEDDLE_ASSIGN_OR_RETURN(const PostTransform transform,
                          PostTransformOf(ctx.Str("post_transform")));
  Svm own;
  HEDDLE_ASSIGN_OR_RETURN(const Svm* const made, SvmIn<RegressorSvm>(ctx, s.width, &own));
  const Svm& svm = *made;
  const int64_t count = svm.count;
  CallHeap heap(ctx);
  const std::pmr::vector<float> x = Samples<float>(ctx, ctx.In("X"), &heap);
  std::pmr::vector<float> score(1, &heap);
  float* to = ctx.Out("Y").mutable_data<float>();
  for (const int64_t r : Watched(s.rows)) {
    const float* row = x.data() + r * s.width;
    float sum = count > 0 ? 0 : svm.Product(row, svm.coefficients.data());
    for (int64_t j = 0; j < count; ++j)
      sum += svm.coefficients[static_cast<size_t>(j)] *
             svm.Product(row, svm.vectors.data() + j * s.width);
    sum += svm.rho[0];
    score[0] = ctx.Int("one_class") != 0 ? (sum > 0 ? 1.0F : -1.0F) : sum;
    TransformScores(transform, SecondScore::kAbsent, &score);
    to[r] = score[0];
  }
  return Status::Ok();
}

// The classes' probabilities that agree best with those of pairs (Wu, Lin and Weng's second way).
void CoupledProbabilities(int64_t k, const std::pmr::vector<float>& pairs, CallHeap* heap,
                          std::pmr::vector<float>* probabilities) {
  const auto n = static_cast<size_t>(k);
  const auto r = [&](size_t i, size_t j) { return pairs[i * n + j]; };
  std::pmr::vector<float> q(n * n, heap), qp(n, heap);
  std::pmr::vector<float>& p = *probabilities;
  p.assign(n, 1.0F / static_cast<float>(k));
  for (size_t t = 0; t < n; ++t) {
    q[t * n + t] = 0;
    for (size_t j = 0; j < n; ++j) {
      if (j == t) continue;
      q[t * n + t] += r(j, t) * r(j, t);
      q[t * n + j] = j < t ? q[j * n + t] : -r(j, t) * r(t, j);
    }
  }
  const float epsilon = 0.005F / static_cast<float>(k);
  for ([[maybe_unused]] const int64_t turn : Watched(std::max<int64_t>(100, k))) {
    float pqp = 0, worst = 0;
    for (size_t t = 0; t < n; ++t) {
      qp[t] = 0;
      for (size_t j = 0; j < n; ++j) qp[t] += q[t * n + j] * p[j];
      pqp += p[t] * qp[t];
    }
    for (size_t t = 0; t < n; ++t) worst = std::max(worst, std::fabs(qp[t] - pqp));
    if (worst < epsilon) break;
    for (size_t t = 0; t < n; ++t) {
      const float d = (-qp[t] + pqp) / q[t * n + t];
      p[t] += d;
      pqp = (pqp + d * (d * q[t * n + t] + 2 * qp[t])) / (1 + d) / (1 + d);
      for (size_t j = 0; j < n; ++j) {
        qp[j] = (qp[j] + d * q[t * n + j]) / (1 + d);
        p[j] /= 1 + d;
      }
    }
  }
}

struct SvmClasses {
  int64_t labels = 0, classes = 1, columns = 0;
  bool vectors = false, fitted = false;  // support vectors are given; probabilities are
};

Result<SvmClasses> SvmClassesOf(const OpContext& ctx, int64_t width) {
  SvmClasses c;
  HEDDLE_ASSIGN_OR_RETURN(c.labels, LabelCountOf(ctx, "classlabels_ints"));
  const Ints& counts = ctx.IntList("vectors_per_class");
  c.vectors = !counts.empty();
  c.classes = c.vectors ? static_cast<int64_t>(counts.size()) : std::max<int64_t>(1, c.labels);
  const auto size = [&](Key key) { return static_cast<int64_t>(ctx.Attr<Floats>(key).size()); };
  int64_t vectors = 0;
  for (const int64_t n : counts) {
    if (n < 0 || n > size("coefficients"))
      return InvalidArgument("vectors_per_class holds ", n, ", coefficients has ",
                             size("coefficients"), " elements");
    vectors += n;
  }
  const int64_t pairs = c.classes * (c.classes - 1) / 2;
  c.fitted = c.vectors && size("prob_a") > 0;
  const int64_t expected = c.vectors ? (c.classes - 1) * vectors : c.classes * width;
  if (size("coefficients") != expected || (c.vectors && size("rho") != pairs) ||
      (c.fitted && (size("prob_a") != pairs || size("prob_b") != pairs)) ||
      (c.vectors && c.classes < 2) || (c.labels > 0 && c.labels != c.classes))
    return InvalidArgument("has ", size("coefficients"), " coefficients, ", size("rho"),
                           " rho and ", c.labels, " labels for ", c.classes, " classes, ", vectors,
                           " support vectors and ", width, " features");
  const int64_t scores = !c.vectors || c.fitted ? c.classes : pairs;
  c.columns = scores == 1 && c.labels == 2 ? 2 : scores;
  return c;
}

Status OnnxSvmClassifierShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(ctx.InShape("X")));
  HEDDLE_ASSIGN_OR_RETURN(const SvmClasses c, SvmClassesOf(ctx, s.width));
  HEDDLE_RETURN_IF_ERROR(PostTransformOf(ctx.Str("post_transform")).status());
  ctx.SetOut("Y", {s.rows}, DType::kI64);
  ctx.SetOut("Z", {s.rows, c.columns}, DType::kF32);
  return Status::Ok();
}

Result<Svm> ClassifierSvm(const OpContext& ctx, int64_t width) {
  HEDDLE_RETURN_IF_ERROR(SvmClassesOf(ctx, width).status());
  const Ints& counts = ctx.IntList("vectors_per_class");
  return SvmOf(ctx, std::accumulate(counts.begin(), counts.end(), int64_t{0}), width);
}

// The scores of all pairs of classes, and how many of them each class wins.
void PairScores(const KernelContext& ctx, const Svm& svm, const float* x,
                std::pmr::vector<float>* pairs, std::pmr::vector<float>* votes) {
  CallHeap heap(ctx);
  std::pmr::vector<float>& scores = *pairs;
  const Ints& counts = ctx.IntList("vectors_per_class");
  const size_t classes = counts.size(), vectors = static_cast<size_t>(svm.count);
  std::pmr::vector<float> kernels(vectors, &heap);
  std::pmr::vector<size_t> begin(classes + 1, 0, &heap);
  scores.clear();
  for (size_t i = 0; i < classes; ++i) begin[i + 1] = begin[i] + static_cast<size_t>(counts[i]);
  for (size_t j = 0; j < vectors; ++j)
    kernels[j] = svm.Product(x, svm.vectors.data() + static_cast<int64_t>(j) * svm.width);
  votes->assign(classes, 0);
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = i + 1; j < classes; ++j) {
      float sum = 0;
      for (size_t k = begin[i]; k < begin[i + 1]; ++k)
        sum += svm.coefficients[(j - 1) * vectors + k] * kernels[k];
      for (size_t k = begin[j]; k < begin[j + 1]; ++k)
        sum += svm.coefficients[i * vectors + k] * kernels[k];
      sum += svm.rho[scores.size()];
      (*votes)[sum > 0 ? i : j] += 1;
      scores.push_back(sum);
    }
}

// The scores of pairs become probabilities of classes.
void FitScores(const KernelContext& ctx, int64_t classes, std::pmr::vector<float>* scores) {
  CallHeap heap(ctx);
  const Floats &a = ctx.Attr<Floats>("prob_a"), &b = ctx.Attr<Floats>("prob_b");
  const auto n = static_cast<size_t>(classes);
  std::pmr::vector<float> pairs(n * n, &heap);
  size_t at = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j, ++at) {
      const float v = (*scores)[at] * static_cast<float>(a[at]) + static_cast<float>(b[at]);
      const float p = std::clamp(1 / (1 + std::exp(v)), 1e-7F, 1 - 1e-7F);
      pairs[i * n + j] = p;
      pairs[j * n + i] = 1 - p;
    }
  CoupledProbabilities(classes, pairs, &heap, scores);
}

Status OnnxSvmClassifier(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(ctx.In("X").shape()));
  HEDDLE_ASSIGN_OR_RETURN(const SvmClasses c, SvmClassesOf(ctx, s.width));
  HEDDLE_ASSIGN_OR_RETURN(const PostTransform transform,
                          PostTransformOf(ctx.Str("post_transform")));
  Svm own;
  HEDDLE_ASSIGN_OR_RETURN(const Svm* const made, SvmIn<ClassifierSvm>(ctx, s.width, &own));
  const Svm& svm = *made;
  const Ints& labels = ctx.IntList("classlabels_ints");
  CallHeap heap(ctx);
  const std::pmr::vector<float> x = Samples<float>(ctx, ctx.In("X"), &heap);
  const auto classes = static_cast<size_t>(c.classes);
  std::pmr::vector<float> scores(&heap), votes(&heap);
  const size_t pairs = c.vectors ? classes * (classes - 1) / 2 : 0;
  scores.reserve(std::max({size_t{2}, classes, pairs}));
  int64_t* label = ctx.Out("Y").mutable_data<int64_t>();
  float* to = ctx.Out("Z").mutable_data<float>();
  for (const int64_t r : Watched(s.rows)) {
    const float* row = x.data() + r * s.width;
    if (c.vectors) {
      PairScores(ctx, svm, row, &scores, &votes);
      if (c.fitted) FitScores(ctx, c.classes, &scores);
    } else {
      scores.clear();
      for (int64_t k = 0; k < c.classes; ++k)
        scores.push_back(svm.rho[0] + svm.Product(row, svm.coefficients.data() + k * s.width));
    }
    const std::pmr::vector<float>& deciding = votes.empty() ? scores : votes;
    const int64_t best = std::max_element(deciding.begin(), deciding.end()) - deciding.begin();
    if (deciding.size() == 1)
      label[r] = scores[0] > 0 ? 1 : 0;
    else
      label[r] = labels.empty() ? best : labels[static_cast<size_t>(best)];
    TransformScores(transform, c.columns == 2 ? SecondScore::kNegative : SecondScore::kAbsent,
                    &scores);
    scores.resize(static_cast<size_t>(c.columns));
    std::copy(scores.begin(), scores.end(), to + r * c.columns);
  }
  return Status::Ok();
}

void SvmAttrs(OpDef& op) {
  op.Attr("kernel_type", "LINEAR").Attr("kernel_params", Floats{}).Attr("coefficients", Floats{});
  op.Attr("support_vectors", Floats{}).Attr("rho", Floats{}).Attr("post_transform", "NONE");
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_ml_svm_regressor) {
  op.Doc("sums of kernels of samples and support vectors").Input("X").Output("Y");
  SvmAttrs(op);
  op.Attr("n_supports", 0).Attr("one_class", 0).InferShape(OnnxSvmRegressorShape);
  op.Prepare(PrepareSvm<RegressorSvm>);
  op.Kernel({DType::kF32, DType::kF64, DType::kI32, DType::kI64}, OnnxSvmRegressor);
}
HEDDLE_OP(onnx_ml_svm_classifier) {
  op.Doc("the class that wins most pairs, and the pairs' scores or fitted probabilities");
  op.Input("X").Output("Y").Output("Z").Attr("classlabels_ints", Ints{});
  op.Attr("classlabels_strings", Strings{}).Attr("prob_a", Floats{}).Attr("prob_b", Floats{});
  op.Attr("vectors_per_class", Ints{});
  SvmAttrs(op);
  op.InferShape(OnnxSvmClassifierShape).Prepare(PrepareSvm<ClassifierSvm>);
  op.Kernel({DType::kF32, DType::kF64, DType::kI32, DType::kI64}, OnnxSvmClassifier);
}

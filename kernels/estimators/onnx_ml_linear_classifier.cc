// Linear models: a score for each class, or values.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/estimators/scores.h"

namespace heddle {
namespace {

Status CheckCoefficients(const OpContext& ctx, int64_t targets, int64_t width) {
  const auto count = static_cast<int64_t>(ctx.Attr<Floats>("coefficients").size());
  const auto intercepts = static_cast<int64_t>(ctx.Attr<Floats>("intercepts").size());
  if (targets > 0 && count == targets * width && (intercepts == 0 || intercepts == targets))
    return Status::Ok();
  return InvalidArgument("coefficients has ", count, " and intercepts ", intercepts,
                         " elements for ", targets, " targets of ", width, " features");
}

template <typename Context>
Result<SampleRows> LinearRows(const Context& ctx, int64_t targets) {
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(ShapeIn(ctx, "X")));
  HEDDLE_RETURN_IF_ERROR(CheckCoefficients(ctx, targets, s.width));
  return s;
}

// The sums of one row.
template <typename T>
void LinearScores(const Floats& weights, const Floats& intercepts, const T* x, int64_t width,
                  int64_t targets, std::pmr::vector<T>* sums) {
  std::pmr::vector<T>& scores = *sums;
  scores.resize(static_cast<size_t>(targets));
  for (size_t t = 0; t < scores.size(); ++t) {
    T sum = 0;
    for (int64_t i = 0; i < width; ++i)
      sum +=
          x[i] * static_cast<T>(weights[t * static_cast<size_t>(width) + static_cast<size_t>(i)]);
    scores[t] = intercepts.empty() ? sum : sum + static_cast<T>(intercepts[t]);
  }
}

Status OnnxLinearRegressorShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, LinearRows(ctx, ctx.Int("targets")));
  HEDDLE_RETURN_IF_ERROR(PostTransformOf(ctx.Str("post_transform")).status());
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape({s.rows, ctx.Int("targets")}, "the result"));
  ctx.SetOut("Y", out, DType::kF32);
  return Status::Ok();
}

Status OnnxLinearRegressor(KernelContext& ctx) {
  const int64_t targets = ctx.Int("targets");
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, LinearRows(ctx, targets));
  HEDDLE_ASSIGN_OR_RETURN(const PostTransform transform,
                          PostTransformOf(ctx.Str("post_transform")));
  CallHeap heap(ctx);
  const std::pmr::vector<float> x = Samples<float>(ctx, ctx.In("X"), &heap);
  std::pmr::vector<float> scores(&heap);
  float* to = ctx.Out("Y").mutable_data<float>();
  for (const int64_t r : Watched(s.rows)) {
    LinearScores(ctx.Attr<Floats>("coefficients"), ctx.Attr<Floats>("intercepts"),
                 x.data() + r * s.width, s.width, targets, &scores);
    TransformScores(transform, SecondScore::kAbsent, &scores);
    to = std::copy(scores.begin(), scores.end(), to);
  }
  return Status::Ok();
}

// One score stands for both classes where two are named.
struct LinearClasses {
  int64_t targets = 0, labels = 0;
  bool doubled = false;
};
Result<LinearClasses> LinearClassesOf(const OpContext& ctx, int64_t width) {
  LinearClasses c;
  const auto count = static_cast<int64_t>(ctx.Attr<Floats>("coefficients").size());
  HEDDLE_ASSIGN_OR_RETURN(c.labels, LabelCountOf(ctx, "classlabels_ints"));
  c.targets = width == 0 ? 0 : count / width;
  c.doubled = c.targets == 1 && c.labels == 2;
  return c;
}

Status OnnxLinearClassifierShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(ctx.InShape("X")));
  HEDDLE_ASSIGN_OR_RETURN(const LinearClasses c, LinearClassesOf(ctx, s.width));
  HEDDLE_RETURN_IF_ERROR(CheckCoefficients(ctx, c.targets, s.width));
  if (c.targets > 1 && c.labels < c.targets)
    return InvalidArgument("has ", c.labels, " labels for ", c.targets, " classes");
  ctx.SetOut("Y", {s.rows}, DType::kI64);
  ctx.SetOut("Z", {s.rows, c.doubled ? 2 : c.targets}, DType::kF32);
  return Status::Ok();
}

Status OnnxLinearClassifier(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(ctx.In("X").shape()));
  HEDDLE_ASSIGN_OR_RETURN(const LinearClasses c, LinearClassesOf(ctx, s.width));
  HEDDLE_RETURN_IF_ERROR(CheckCoefficients(ctx, c.targets, s.width));
  HEDDLE_ASSIGN_OR_RETURN(const PostTransform transform,
                          PostTransformOf(ctx.Str("post_transform")));
  const Ints& labels = ctx.IntList("classlabels_ints");
  CallHeap heap(ctx);
  const std::pmr::vector<float> x = Samples<float>(ctx, ctx.In("X"), &heap);
  std::pmr::vector<float> scores(&heap);
  int64_t* label = ctx.Out("Y").mutable_data<int64_t>();
  float* to = ctx.Out("Z").mutable_data<float>();
  // Labels that are texts are numbered.
  const auto name = [&](int64_t i) { return labels.empty() ? i : labels[static_cast<size_t>(i)]; };
  for (const int64_t r : Watched(s.rows)) {
    LinearScores(ctx.Attr<Floats>("coefficients"), ctx.Attr<Floats>("intercepts"),
                 x.data() + r * s.width, s.width, c.targets, &scores);
    if (c.targets > 1) {
      label[r] = name(std::max_element(scores.begin(), scores.end()) - scores.begin());
    } else {
      const bool positive = scores[0] > 0;
      label[r] = c.doubled ? name(positive ? 1 : 0) : positive ? (c.labels == 0 ? 1 : name(0)) : 0;
    }
    const SecondScore second = !c.doubled                              ? SecondScore::kAbsent
                               : transform == PostTransform::kLogistic ? SecondScore::kNegative
                                                                       : SecondScore::kComplement;
    TransformScores(transform, second, &scores);
    to = std::copy(scores.begin(), scores.end(), to);
  }
  return Status::Ok();
}

void LinearAttrs(OpDef& op) {
  op.Attr("coefficients", Floats{}).Attr("intercepts", Floats{}).Attr("post_transform", "NONE");
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_ml_linear_regressor) {
  op.Doc("rows times coefficients, plus intercepts").Input("X").Output("Y").Attr("targets", 1);
  LinearAttrs(op);
  op.InferShape(OnnxLinearRegressorShape);
  op.Kernel({DType::kF32, DType::kF64, DType::kI32, DType::kI64}, OnnxLinearRegressor);
}
HEDDLE_OP(onnx_ml_linear_classifier) {
  op.Doc("the best of linear scores, and the scores; labels that are texts are numbered");
  op.Input("X").Output("Y").Output("Z").Attr("classlabels_ints", Ints{});
  op.Attr("classlabels_strings", Strings{}).Attr("multi_class", 0);
  LinearAttrs(op);
  op.InferShape(OnnxLinearClassifierShape);
  op.Kernel({DType::kF32, DType::kF64, DType::kI32, DType::kI64}, OnnxLinearClassifier);
}

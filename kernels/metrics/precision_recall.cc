// precision_recall: precision and recall per class and on average.
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// --- precision_recall ---

// Per class: true positives, false positives, true negatives, false negatives.
using States = std::vector<float>;

double Ratio(double part, double other) {
  return part > 0 || other > 0 ? part / (part + other) : 1.0;
}

double F1(double precision, double recall) {
  return precision > 0 || recall > 0 ? 2 * precision * recall / (precision + recall) : 0.0;
}

// Precision, recall and F1: means over the classes, then over all samples.
void PutMetrics(const KernelContext& ctx, Key slot, const States& states) {
  const size_t classes = states.size() / 4;
  double precision = 0, recall = 0, tp = 0, fp = 0, fn = 0;
  for (size_t c = 0; c < classes; ++c) {
    const float* s = states.data() + c * 4;
    precision += Ratio(s[0], s[1]);
    recall += Ratio(s[0], s[3]);
    tp += s[0];
    fp += s[1];
    fn += s[3];
  }
  precision /= static_cast<double>(classes);
  recall /= static_cast<double>(classes);
  const double micro_p = Ratio(tp, fp), micro_r = Ratio(tp, fn);
  const double metrics[6] = {precision, recall,  F1(precision, recall),
                             micro_p,   micro_r, F1(micro_p, micro_r)};
  std::copy(metrics, metrics + 6, ctx.Alloc(slot, DType::kF64, Shape{6}).mutable_data<double>());
}

Status PrecisionRecall(KernelContext& ctx) {
  const int64_t classes = ctx.Int("class_number");
  const Labels found(ctx, ctx.In("Indices")), labelled(ctx, ctx.In("Labels"));
  const int64_t n = ctx.In("Indices").numel();
  const Tensor *weights = ctx.InOpt("Weights"), *before = ctx.InOpt("StatesInfo");
  if (classes < 1 || ctx.In("Labels").numel() != n ||
      (weights != nullptr && (weights->numel() != n || weights->dtype() != DType::kF32)) ||
      (before != nullptr && (before->numel() != classes * 4 || before->dtype() != DType::kF32)))
    return InvalidArgument("Indices, Labels, Weights and StatesInfo do not fit ", classes,
                           " classes");
  HEDDLE_RETURN_IF_ERROR(found.Check(n, classes, 0));
  HEDDLE_RETURN_IF_ERROR(labelled.Check(n, classes, 0));
  States states(static_cast<size_t>(classes) * 4, 0.f);
  for (int64_t i = 0; i < n; ++i) {
    const float w = weights != nullptr ? weights->data<float>()[i] : 1.f;
    for (int64_t c = 0; c < classes; ++c) {
      const bool is_found = c == found[i], is_label = c == labelled[i];
      const int kind = is_found ? (is_label ? 0 : 1) : is_label ? 3 : 2;
      states[static_cast<size_t>(c * 4 + kind)] += w;
    }
  }
  PutMetrics(ctx, "BatchMetrics", states);
  for (size_t i = 0; before != nullptr && i < states.size(); ++i)
    states[i] += before->data<float>()[i];
  PutMetrics(ctx, "AccumMetrics", states);
  std::copy(states.begin(), states.end(),
            ctx.Alloc("AccumStatesInfo", DType::kF32, Shape{classes, 4}).mutable_data<float>());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(precision_recall) {
  op.Doc("precision, recall and F1 of classes, of this batch and of all");
  op.Input("MaxProbs", kNoBuffer).Input("Indices").Input("Labels").Input("Weights", kOptional);
  op.Input("StatesInfo", kOptional).Output("BatchMetrics").Output("AccumMetrics");
  op.Output("AccumStatesInfo").Attr("class_number", 1).AnyKernel(PrecisionRecall);
}

HEDDLE_EXAMPLES(precision_recall, R"(
example float32 3x4, class_number 3
attr class_number INT 3
in Indices int32 [2, 1] 1 0
in Labels int32 [2, 1] 1 0
in MaxProbs float32 [2, 1] 0.274 0.71
in StatesInfo float32 [3, 4] 17 4 8 15 3 29 0 12 29 19 27 18
in Weights float32 [2, 1] 0.713 0.923
# Paddle computes with constants of single precision.
close 1e-06 1e-07
out AccumMetrics float64 [6] 0.5117374062538147 0.4659046232700348 0.4877466559410095
  0.4933551549911499 0.529465913772583 0.5107730627059937
out AccumStatesInfo float32 [3, 4] 17.923 4 8.713 15 3.713 29 0.923 12 29 19 28.636 18
out BatchMetrics float64 [6] 1*6

example int32 4x1, class_number 10
attr class_number INT 10
in Indices int32 [4, 1] 2 0 1 1
in Labels int32 [4, 1] 0 1 1 0
in MaxProbs float32 [4, 1] 0.615 0.43 0.245 0.8
# Paddle computes with constants of single precision.
close 1e-06 1e-07
out AccumMetrics float64 [6] 0.75 0.8500000238418579 0.7968750596046448 0.25 0.25 0.25
out AccumStatesInfo float32 [10, 4] 0 1 1 2 1*4 0 1 3 0 0 0 4 0 0 0 4 0 0 0 4 0 0 0 4 0 0 0 4 0 0 0
  4 0 0 0 4 0
out BatchMetrics float64 [6] 0.75 0.8500000238418579 0.7968750596046448 0.25 0.25 0.25
)")

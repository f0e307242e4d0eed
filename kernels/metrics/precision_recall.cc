// precision_recall: precision and recall per class and on average.
#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// Per class: true positives, false positives, true negatives, false negatives.
template <typename T>
using States = std::vector<T>;

template <typename T>
T Ratio(T part, T other) {
  return part > 0 || other > 0 ? part / (part + other) : T(1);
}
template <typename T>
T F1(T precision, T recall) {
  return precision > 0 || recall > 0 ? 2 * precision * recall / (precision + recall) : T(0);
}

// Precision, recall and F1: means over the classes, then over all samples. Computed in the states'
// dtype.
template <typename T>
void PutMetrics(const KernelContext& ctx, Key slot, const States<T>& states) {
  const size_t classes = states.size() / 4;
  T precision = 0, recall = 0, tp = 0, fp = 0, fn = 0;
  for (size_t c = 0; c < classes; ++c) {
    const T* s = states.data() + c * 4;
    precision += Ratio(s[0], s[1]);
    recall += Ratio(s[0], s[3]);
    tp += s[0];
    fp += s[1];
    fn += s[3];
  }
  precision /= static_cast<T>(classes);
  recall /= static_cast<T>(classes);
  const T micro_p = Ratio(tp, fp), micro_r = Ratio(tp, fn);
  const T metrics[6] = {precision, recall,  F1(precision, recall),
                        micro_p,   micro_r, F1(micro_p, micro_r)};
  std::copy(metrics, metrics + 6, ctx.Alloc(slot, DType::kF64, Shape{6}).mutable_data<double>());
}

template <typename T>
struct PrecisionRecall {
  static Status Run(KernelContext& ctx) {
    const int64_t classes = ctx.Int("class_number");
    const Labels found(ctx, ctx.In("Indices")), labelled(ctx, ctx.In("Labels"));
    const int64_t n = ctx.In("Indices").numel();
    const Tensor *weights = ctx.InOpt("Weights"), *before = ctx.InOpt("StatesInfo");
    if (classes < 1 || ctx.In("Labels").numel() != n ||
        (weights != nullptr && (weights->numel() != n || weights->dtype() != kDTypeOf<T>)) ||
        (before != nullptr && (before->numel() != classes * 4 || before->dtype() != kDTypeOf<T>)))
      return InvalidArgument("Indices, Labels, Weights and StatesInfo do not fit ", classes,
                             " classes");
    HEDDLE_RETURN_IF_ERROR(found.Check(n, classes, 0));
    HEDDLE_RETURN_IF_ERROR(labelled.Check(n, classes, 0));
    constexpr int64_t kMost = int64_t{1} << 40;  // beyond all memory
    if (classes > kMost) return InvalidArgument("class_number is ", classes);
    Tensor& out = ctx.Alloc("AccumStatesInfo", kDTypeOf<T>, Shape{classes, 4});
    States<T> states(static_cast<size_t>(classes) * 4, T(0));
    for (const int64_t i : Watched(n)) {
      const T w = weights != nullptr ? weights->data<T>()[i] : T(1);
      for (int64_t c = 0; c < classes; ++c) {
        const bool is_found = c == found[i], is_label = c == labelled[i];
        const int kind = is_found ? (is_label ? 0 : 1) : is_label ? 3 : 2;
        states[static_cast<size_t>(c * 4 + kind)] += w;
      }
    }
    PutMetrics(ctx, "BatchMetrics", states);
    for (size_t i = 0; before != nullptr && i < states.size(); ++i)
      states[i] += before->data<T>()[i];
    PutMetrics(ctx, "AccumMetrics", states);
    std::copy(states.begin(), states.end(), out.template mutable_data<T>());
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(precision_recall) {
  op.Doc("precision, recall and F1 of classes, of this batch and of all");
  op.Input("MaxProbs", kNoBuffer).Input("Indices").Input("Labels").Input("Weights", kOptional);
  op.Input("StatesInfo", kOptional).Output("BatchMetrics").Output("AccumMetrics");
  op.Output("AccumStatesInfo").Attr("class_number", 1).KernelKey("MaxProbs");
  op.Kernels<PrecisionRecall, float, double>();
}

HEDDLE_EXAMPLES(precision_recall, R"(
example float64 3x4, class_number 3
attr class_number INT 3
in Indices int32 [3, 1] 1 0 2
in Labels int32 [3, 1] 1 0 1
in MaxProbs float64 [3, 1] 0.274 0.71 0.4
in StatesInfo float64 [3, 4] 17 4 8 15 3 29 0 12 29 19 27 18
in Weights float64 [3, 1] 0.713 0.923 0.5
out AccumMetrics float64 [6] 0.5096612137206235 0.463475496616305 0.48547235270458555
  0.49096338814768853 0.5267121577764834 0.5082098839776787
out AccumStatesInfo float64 [3, 4] 17.923000000000002 4 9.213000000000001 15 3.713 29 0.923 12.5 29
  19.5 28.636 18
out BatchMetrics float64 [6] 0.6666666666666666 0.8625996152789227 0.7520814615154237
  0.7659176029962547 0.7659176029962547 0.7659176029962547

example float32 3x4, class_number 3
attr class_number INT 3
in Indices int32 [2, 1] 1 0
in Labels int32 [2, 1] 1 0
in MaxProbs float32 [2, 1] 0.274 0.71
in StatesInfo float32 [3, 4] 17 4 8 15 3 29 0 12 29 19 27 18
in Weights float32 [2, 1] 0.713 0.923
out AccumMetrics float64 [6] 0.5117374062538147 0.4659046232700348 0.4877466559410095
  0.4933551549911499 0.529465913772583 0.5107730627059937
out AccumStatesInfo float32 [3, 4] 17.923 4 8.713 15 3.713 29 0.923 12 29 19 28.636 18
out BatchMetrics float64 [6] 1*6

example int32 4x1, class_number 10
attr class_number INT 10
in Indices int32 [4, 1] 2 0 1 1
in Labels int32 [4, 1] 0 1 1 0
in MaxProbs float32 [4, 1] 0.615 0.43 0.245 0.8
out AccumMetrics float64 [6] 0.75 0.8500000238418579 0.7968750596046448 0.25 0.25 0.25
out AccumStatesInfo float32 [10, 4] 0 1 1 2 1*4 0 1 3 0 0 0 4 0 0 0 4 0 0 0 4 0 0 0 4 0 0 0 4 0 0 0
  4 0 0 0 4 0
out BatchMetrics float64 [6] 0.75 0.8500000238418579 0.7968750596046448 0.25 0.25 0.25
)")

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

#include <cmath>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// Layout of the running counts: `slide` windows of buckets, their sum, and the number of the next
// window.
struct Layout {
  int64_t buckets, slide;
  int64_t size() const { return slide == 0 ? buckets : (slide + 1) * buckets + 1; }
};

Status InferAuc(ShapeContext& ctx) {
  const Shape& predict = ctx.InShape("Predict");
  const Layout layout{ctx.Int("num_thresholds") + 1, ctx.Int("slide_steps")};
  if (layout.buckets < 2 || layout.slide < 0)
    return InvalidArgument("num_thresholds must be positive and slide_steps not negative");
  if (predict.known_rank() && (predict.rank() != 2 || predict[1] == 0))
    return InvalidArgument("Predict must be [N, 1] or [N, 2], not ", predict.ToString());
  const Shape& label = ctx.InShape("Label");
  if (predict.is_static() && label.is_static() && label.numel() != predict[0])
    return InvalidArgument("Label must have one element per row of Predict");
  if (ctx.HasIn("InsTagWeight")) {
    const Shape& weight = ctx.InShape("InsTagWeight");
    if ((weight.is_static() && weight.numel() == 0) || ctx.InDType("InsTagWeight") != DType::kF32)
      return InvalidArgument("InsTagWeight ", Name(ctx.InDType("InsTagWeight")), " ",
                             weight.ToString(), " must have float32 elements");
  }
  for (Key key : {Key("StatPos"), Key("StatNeg")}) {
    const Shape& s = ctx.InShape(key);
    if ((s.is_static() && s.numel() != layout.size()) || ctx.InDType(key) != DType::kI64)
      return InvalidArgument(key.name, " ", s.ToString(), " must have ", layout.size(),
                             " int64 elements");
  }
  ctx.SetOut("AUC", Shape{}, DType::kF64);
  const Shape counts = layout.slide == 0 ? Shape{1, layout.size()} : Shape{layout.size()};
  for (Key key : {Key("StatPosOut"), Key("StatNegOut")}) ctx.SetOut(key, counts, DType::kI64);
  return Status::Ok();
}

double AreaUnderCurve(const int64_t* pos, const int64_t* neg, int64_t buckets) {
  double area = 0, all_pos = 0, all_neg = 0;
  for (int64_t i = buckets - 1; i >= 0; --i) {
    const double p = all_pos + static_cast<double>(pos[i]);
    const double n = all_neg + static_cast<double>(neg[i]);
    area += std::abs(n - all_neg) * (p + all_pos) / 2;
    all_pos = p;
    all_neg = n;
  }
  return all_pos > 0 && all_neg > 0 ? area / all_pos / all_neg : 0;
}

// Adds this batch to the window whose turn it is, in place of what it held. As in Paddle, a batch
// that stands for none takes the window's place and adds nothing to the sum.
void Slide(const Layout& layout, int64_t* stat, const std::vector<int64_t>& batch, bool none) {
  if (layout.slide == 0) {
    if (none) return;
    for (int64_t i = 0; i < layout.buckets; ++i) stat[i] += batch[static_cast<size_t>(i)];
    return;
  }
  int64_t& turn = stat[layout.size() - 1];
  const int64_t window = ((turn % layout.slide) + layout.slide) % layout.slide;
  int64_t* own = stat + window * layout.buckets;
  int64_t* sum = stat + layout.slide * layout.buckets;
  for (int64_t i = 0; i < layout.buckets; ++i) {
    sum[i] -= own[i];
    own[i] = batch[static_cast<size_t>(i)];
    if (!none) sum[i] += own[i];
  }
  turn = static_cast<int64_t>(static_cast<uint64_t>(turn) + 1);
}

template <typename T>
struct Auc {
  static Status Run(KernelContext& ctx) {
    const Tensor& predict = ctx.In("Predict");
    const Layout layout{ctx.Int("num_thresholds") + 1, ctx.Int("slide_steps")};
    const Labels label(ctx, ctx.In("Label"));
    const int64_t rows = predict.dim(0), width = predict.dim(1);
    std::vector<int64_t> pos(static_cast<size_t>(layout.buckets), 0), neg(pos);
    for (const int64_t i : Watched(rows)) {
      const T p = predict.data<T>()[i * width + width - 1];
      if (!(p >= T(0) && p <= T(1)))
        return OutOfRange("Predict must lie in [0, 1], row ", i, " is ", p);
      const auto bucket = static_cast<size_t>(p * static_cast<T>(layout.buckets - 1));
      ++(label[i] != 0 ? pos : neg)[bucket];
    }
    constexpr KeyPair kStats[] = {{"StatPos", "StatPosOut"}, {"StatNeg", "StatNegOut"}};
    for (const KeyPair& p : kStats) {
      const Tensor& in = ctx.In(p.in);
      Tensor& out = ctx.Out(p.out);
      if (in.raw() != out.raw()) WatchedMemcpy(out.mutable_raw(), in.raw(), in.bytes());
    }
    int64_t* all_pos = ctx.Out("StatPosOut").template mutable_data<int64_t>();
    int64_t* all_neg = ctx.Out("StatNegOut").template mutable_data<int64_t>();
    // A filter of tags that leaves no instance hands on rows that do not count, with weight 0.
    const Tensor* weight = ctx.InOpt("InsTagWeight");
    const bool none = weight != nullptr && weight->data<float>()[0] == 0;
    Slide(layout, all_pos, pos, none);
    Slide(layout, all_neg, neg, none);
    const int64_t sums = layout.slide * layout.buckets;
    *ctx.Out("AUC").template mutable_data<double>() =
        AreaUnderCurve(all_pos + sums, all_neg + sums, layout.buckets);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(auc) {
  op.Doc("area under the ROC curve, over running counts")
      .Input("Predict")
      .Input("Label")
      .Input("StatPos")
      .Input("StatNeg")
      .Input("InsTagWeight", kOptional)
      .Output("AUC")
      .Output("StatPosOut")
      .Output("StatNegOut")
      .Attr("curve", "ROC")
      .Attr("num_thresholds", 8191)
      .Attr("slide_steps", 1)
      .Inplace("StatPos", "StatPosOut")
      .Inplace("StatNeg", "StatNegOut")
      .InferShape(InferAuc)
      .Kernels<Auc, float, double>();
}

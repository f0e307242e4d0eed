// mine_hard_examples: selects the unmatched priors with the largest losses for training.
#include <set>

#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/shape_checks.h"
#include "kernels/base/to_place.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// --- mine_hard_examples ---

template <typename T>
struct MineHardExamples {
  static Status Run(KernelContext& ctx) {
    const Tensor &loss = ctx.In("ClsLoss"), &match = ctx.In("MatchIndices");
    const Tensor &dist = ctx.In("MatchDist"), *loc = ctx.InOpt("LocLoss");
    if (loss.rank() != 2 || match.dtype() != DType::kI32 || match.numel() != loss.numel() ||
        dist.numel() != loss.numel() || dist.dtype() != loss.dtype() ||
        (loc != nullptr && (loc->numel() != loss.numel() || loc->dtype() != loss.dtype())))
      return InvalidArgument("ClsLoss, LocLoss, MatchIndices and MatchDist do not fit each other");
    const bool hard = ctx.Str("mining_type") == "hard_example";
    const int64_t cols = loss.dim(1);
    Tensor& updated = ctx.Alloc("UpdatedMatchIndices", DType::kI32, match.shape());
    CopyRows(match, 0, match.dim(0), updated, 0);
    std::vector<int32_t> negatives;
    Offsets offsets{0};
    for (const int64_t n : Watched(loss.dim(0))) {
      const int64_t at = n * cols;
      const std::set<int64_t> picked =
          Pick(ctx, hard, cols, loss.data<T>() + at, loc != nullptr ? loc->data<T>() + at : nullptr,
               match.data<int32_t>() + at, dist.data<T>() + at);
      for (int64_t m = 0; m < cols; ++m) {
        if (match.data<int32_t>()[at + m] <= -1) {
          if (picked.count(m) > 0) negatives.push_back(static_cast<int32_t>(m));
        } else if (hard && picked.count(m) == 0) {
          updated.mutable_data<int32_t>()[at + m] = -1;
        }
      }
      offsets.push_back(negatives.size());
    }
    Tensor& out = ctx.Alloc("NegIndices", DType::kI32, Shape{std::ssize(negatives), 1});
    std::copy(negatives.begin(), negatives.end(), out.mutable_data<int32_t>());
    out.set_lod({offsets});
    return Status::Ok();
  }

  // The priors of one image with the largest losses.
  static std::set<int64_t> Pick(const OpContext& ctx, bool hard, int64_t cols, const T* loss,
                                const T* loc, const int32_t* match, const T* dist) {
    std::vector<std::pair<T, int64_t>> order;
    const T near = static_cast<T>(ctx.Float("neg_dist_threshold"));
    int64_t matched = 0;
    for (const int64_t m : Watched(cols)) {
      matched += match[m] != -1;
      if (!hard && !(match[m] == -1 && dist[m] < near)) continue;
      order.emplace_back(hard && loc != nullptr ? loss[m] + loc[m] : loss[m], m);
    }
    int64_t keep =
        hard
            ? ctx.Int("sample_size")
            : ToPlace(static_cast<float>(matched) * static_cast<float>(ctx.Float("neg_pos_ratio")));
    keep = std::clamp<int64_t>(keep, 0, std::ssize(order));
    LookCount looks;
    std::sort(order.begin(), order.end(),
              looks.In([](const auto& a, const auto& b) { return Greater(a.first, b.first); }));
    std::set<int64_t> picked;
    for (int64_t i = 0; i < keep; ++i) picked.insert(order[static_cast<size_t>(i)].second);
    return picked;
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(mine_hard_examples) {
  op.Doc("the unmatched priors with the largest losses");
  op.Input("ClsLoss").Input("LocLoss", kOptional).Input("MatchIndices").Input("MatchDist");
  op.Output("NegIndices").Output("UpdatedMatchIndices").Attr("neg_pos_ratio", 1.0);
  op.Attr("neg_dist_threshold", 0.5).Attr("sample_size", 0).Attr("mining_type", "max_negative");
  op.KernelKey("ClsLoss").Kernels<MineHardExamples, float, double>();
}

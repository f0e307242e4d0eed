// bipartite_match gives boxes to priors; mine_hard_examples picks the priors without one to train
// on.
#include <set>

#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

constexpr double kNear = 1e-6;      // less than this is no match
constexpr int64_t kManyRows = 130;  // from here on, sorting once is cheaper than searching again

template <typename T>
void MatchMany(const T* dist, int64_t rows, int64_t cols, int32_t* match, T* match_dist) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rows * cols; ++i)
    if (dist[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return dist[a] > dist[b]; });
  std::vector<bool> taken(static_cast<size_t>(rows), false);
  for (int64_t at : order) {
    const int64_t row = at / cols, col = at % cols;
    if (match[col] != -1 || taken[static_cast<size_t>(row)]) continue;
    match[col] = static_cast<int32_t>(row);
    match_dist[col] = dist[at];
    taken[static_cast<size_t>(row)] = true;
  }
}

// The matches of the columns of one matrix, best first, each row and column once.
template <typename T>
void Match(const T* dist, int64_t rows, int64_t cols, int32_t* match, T* match_dist) {
  if (rows >= kManyRows) return MatchMany(dist, rows, cols, match, match_dist);
  std::vector<int64_t> free(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) free[static_cast<size_t>(i)] = i;
  while (!free.empty()) {
    int64_t row = -1, col = -1;
    T best = -1;
    for (int64_t j = 0; j < cols; ++j) {
      if (match[j] != -1) continue;
      for (int64_t i : free) {
        const T d = dist[i * cols + j];
        if (d < static_cast<T>(kNear) || !(d > best)) continue;
        best = d;
        row = i;
        col = j;
      }
    }
    if (col < 0) return;
    match[col] = static_cast<int32_t>(row);
    match_dist[col] = best;
    free.erase(std::find(free.begin(), free.end(), row));
  }
}

// Columns without a match get their nearest row, where that is near enough.
template <typename T>
void MatchRest(const T* dist, int64_t rows, int64_t cols, T threshold, int32_t* match,
               T* match_dist) {
  for (int64_t j = 0; j < cols; ++j) {
    if (match[j] != -1) continue;
    T best = -1;
    for (int64_t i = 0; i < rows; ++i) {
      const T d = dist[i * cols + j];
      if (d < static_cast<T>(kNear) || d < threshold || !(d > best)) continue;
      best = match_dist[j] = d;
      match[j] = static_cast<int32_t>(i);
    }
  }
}

template <typename T>
struct BipartiteMatch {
  static Status Run(KernelContext& ctx) {
    const Tensor& dist = ctx.In("DistMat");
    if (dist.rank() != 2) return InvalidArgument("DistMat must be a matrix");
    Offsets offsets{0, static_cast<size_t>(dist.dim(0))};
    if (dist.has_lod()) {
      HEDDLE_ASSIGN_OR_RETURN(const Offsets* const given, OffsetsOf(dist, "DistMat"));
      offsets = *given;
    }
    const int64_t count = SequenceCount(offsets), cols = dist.dim(1);
    Tensor& index = ctx.Alloc("ColToRowMatchIndices", DType::kI32, Shape{count, cols});
    Tensor& match = ctx.Alloc("ColToRowMatchDist", dist.dtype(), Shape{count, cols});
    std::fill_n(index.mutable_data<int32_t>(), index.numel(), -1);
    ZeroAll(match);
    const T threshold = static_cast<T>(ctx.Float("dist_threshold"));
    for (int64_t n = 0; n < count; ++n) {
      const T* from = dist.data<T>() + Begin(offsets, n) * cols;
      int32_t* to = index.mutable_data<int32_t>() + n * cols;
      T* to_dist = match.mutable_data<T>() + n * cols;
      Match(from, Length(offsets, n), cols, to, to_dist);
      if (ctx.Str("match_type") == "per_prediction")
        MatchRest(from, Length(offsets, n), cols, threshold, to, to_dist);
    }
    return Status::Ok();
  }
};

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
    for (int64_t n = 0; n < loss.dim(0); ++n) {
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
    for (int64_t m = 0; m < cols; ++m) {
      matched += match[m] != -1;
      if (!hard && !(match[m] == -1 && dist[m] < near)) continue;
      order.emplace_back(hard && loc != nullptr ? loss[m] + loc[m] : loss[m], m);
    }
    int64_t keep = hard ? ctx.Int("sample_size")
                        : static_cast<int64_t>(static_cast<float>(matched) *
                                               static_cast<float>(ctx.Float("neg_pos_ratio")));
    keep = std::clamp<int64_t>(keep, 0, std::ssize(order));
    std::sort(order.begin(), order.end(),
              [](const auto& a, const auto& b) { return a.first > b.first; });
    std::set<int64_t> picked;
    for (int64_t i = 0; i < keep; ++i) picked.insert(order[static_cast<size_t>(i)].second);
    return picked;
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(bipartite_match) {
  op.Doc("for each column of a matrix the row that is its match, or -1").Input("DistMat");
  op.Output("ColToRowMatchIndices").Output("ColToRowMatchDist");
  op.Attr("match_type", "bipartite").Attr("dist_threshold", 0.5);
  op.Kernels<BipartiteMatch, float, double>();
}
HEDDLE_OP(mine_hard_examples) {
  op.Doc("the unmatched priors with the largest losses");
  op.Input("ClsLoss").Input("LocLoss", kOptional).Input("MatchIndices").Input("MatchDist");
  op.Output("NegIndices").Output("UpdatedMatchIndices").Attr("neg_pos_ratio", 1.0);
  op.Attr("neg_dist_threshold", 0.5).Attr("sample_size", 0).Attr("mining_type", "max_negative");
  op.KernelKey("ClsLoss").Kernels<MineHardExamples, float, double>();
}

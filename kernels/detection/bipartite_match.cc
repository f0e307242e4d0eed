// bipartite_match: assigns boxes to priors, each box to at most one.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

constexpr double kNear = 1e-6;  // less than this is no match

constexpr int64_t kManyRows = 130;  // from here on, sorting once is cheaper than searching again

template <typename T>
void MatchMany(const T* dist, int64_t rows, int64_t cols, int32_t* match, T* match_dist) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rows * cols; ++i)
    if (dist[i] > 0) order.push_back(i);
  LookCount looks;
  std::stable_sort(order.begin(), order.end(),
                   looks.In([&](int64_t a, int64_t b) { return dist[a] > dist[b]; }));
  std::vector<bool> taken(static_cast<size_t>(rows), false);
  for (int64_t at : order) {
    LookForInterrupt();
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
    for (const int64_t j : Watched(cols)) {
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
  for (const int64_t j : Watched(cols)) {
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
    WatchedFill(index.mutable_data<int32_t>(), index.numel(), -1);
    ZeroAll(match);
    const T threshold = static_cast<T>(ctx.Float("dist_threshold"));
    for (const int64_t n : Watched(count)) {
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

}  // namespace
}  // namespace heddle

HEDDLE_OP(bipartite_match) {
  op.Doc("for each column of a matrix the row that is its match, or -1").Input("DistMat");
  op.Output("ColToRowMatchIndices").Output("ColToRowMatchDist");
  op.Attr("match_type", "bipartite").Attr("dist_threshold", 0.5);
  op.Kernels<BipartiteMatch, float, double>();
}

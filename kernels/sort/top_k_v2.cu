// The k greatest elements along an axis: a group computes a line.
#include "core/kernel_context.h"
#include "device/cuda/grid/extremes.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/in_float.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/lines.h"

namespace heddle::HEDDLE_GRID {
namespace {

// Each round finds the best element that comes after the previous one in the order.
struct TopKBody {
  const float* x;
  float* out;        // nullptr: nobody reads the elements
  int64_t* indices;  // nullptr: nobody reads their places
  int64_t n, inner, k;
  float sign;
  HEDDLE_BODY void operator()(Group& group, int64_t line) const {
    const int64_t outer = line / inner, column = line % inner;
    const float* const from = x + outer * n * inner + column;
    const BetterFound better{sign};
    Found last{0, -1};
    for (int64_t round = 0; round < k; ++round) {
      Found best{0, -1};
      for (int64_t i = group.rank(); i < n; i += group.size()) {
        const Found f{from[i * inner], i};
        if (round == 0 || better.Before(last, f)) best = better(best, f);
      }
      last = group.Reduce(best, better);
      if (group.rank() != 0) continue;
      const int64_t to = (outer * k + round) * inner + column;
      if (out != nullptr) out[to] = last.value;
      if (indices != nullptr) indices[to] = last.at;
    }
  }
};

Status TopK(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const bool v2 = ctx.def().FindAttr("axis") >= 0;
  HEDDLE_ASSIGN_OR_RETURN(const Lines l, LinesOf(x.shape(), v2 ? ctx.Int("axis") : -1, false));
  const int64_t k = ctx.Int("k");
  if (k < 1 || k > l.n) return InvalidArgument("k is ", k, ", expected 1 to ", l.n);
  Tensor *const out = ctx.OutOpt("Out"), *const at = ctx.OutOpt("Indices");
  return Groups(queue, l.count, l.n,
                TopKBody{x.data<float>(), out == nullptr ? nullptr : out->mutable_data<float>(),
                         at == nullptr ? nullptr : at->mutable_data<int64_t>(), l.n, l.inner, k,
                         v2 && !ctx.Bool("largest") ? -1.0f : 1.0f});
}
// Large k goes to the host, since each round reads the whole line. Several NaN may come in another
// order than there.
bool CoversTopK(const CallView& call) {
  const bool longs = call.def().FindAttr("index_type") < 0 || call.Int("index_type") == 3;
  return !call.HasIn("K") && call.Int("k") >= 1 && call.Int("k") <= 64 && longs;
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(top_k) { kernel = {InFloat<TopK>, CoversTopK, kReals}; }
HEDDLE_CUDA_KERNEL(top_k_v2) { kernel = {InFloat<TopK>, CoversTopK, kReals}; }

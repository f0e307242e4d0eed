#include "kernels/gemm/gemm_calls.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

constexpr int64_t kLeastSide = 64;      // of a block, so that packing for it pays
constexpr int64_t kLeastOfVector = 16;  // whose products pack nothing

int64_t WholeSteps(int64_t length, int64_t most, int64_t least = kLeastSide) {
  return std::min(most, std::max(least, length / least * least));
}

void AddCalls(const GemmCall& call, bool columns, std::vector<GemmCall>* calls) {
  const BatchedGemm& g = call.g;
  if (g.batch * CallCost(g.one) <= kCallCost) return calls->push_back(call);
  for (int i = 0; i < g.dims.rank(); ++i) {
    if (g.dims[i] == 1 || g.c_stride[i] == 0) continue;
    const int64_t each = std::max<int64_t>(1, g.batch * CallCost(g.one) / g.dims[i]);
    const int64_t step = std::clamp<int64_t>(kCallCost / each, 1, g.dims[i]);
    for (int64_t at = 0; at < g.dims[i]; at += step) {
      GemmCall part = call;
      part.g.dims[i] = std::min(step, g.dims[i] - at);
      part.g.batch = g.batch / g.dims[i] * part.g.dims[i];
      part.a_at += at * g.a_stride[i];
      part.b_at += at * g.b_stride[i];
      part.c_at += at * g.c_stride[i];
      AddCalls(part, columns, calls);
    }
    return;
  }
  const GemmDims& d = g.one;
  GemmBlock block = BlockOf(d, columns);
  block.rows = std::max<int64_t>(1, block.rows);  // of a product without columns
  block.columns = std::max<int64_t>(1, block.columns);
  for (int64_t row = 0; row < d.m; row += block.rows)
    for (int64_t column = 0; column < d.n; column += block.columns) {
      GemmCall part = call;
      part.g.one.m = std::min(block.rows, d.m - row);
      part.g.one.n = std::min(block.columns, d.n - column);
      part.row = row;
      part.column = column;
      part.a_at += row * (d.trans_a ? 1 : d.lda);
      part.b_at += column * (d.trans_b ? d.ldb : 1);
      part.c_at += row * d.ldc + column;
      calls->push_back(part);
    }
}

}  // namespace

GemmBlock BlockOf(const GemmDims& d, bool columns) {
  if (columns && (d.m == 1 || d.n == 1)) {
    const int64_t each = std::max<int64_t>(1, CallCost(d) / std::max<int64_t>(1, d.m * d.n));
    const int64_t length = WholeSteps(kCallCost / each, d.m * d.n, kLeastOfVector);
    return {std::min(d.m, length), std::min(d.n, length)};
  }
  // The rows that make a call with so many columns, or columns with so many rows.
  const auto fit = [&](int64_t other) {
    const int64_t shared = CallCost({.n = other, .k = d.k});
    const int64_t each = CallCost({.m = 1, .n = other, .k = d.k}) - shared;
    return std::max<int64_t>(0, kCallCost - shared) / std::max<int64_t>(1, each);
  };
  if (!columns) return {WholeSteps(fit(d.n), d.m), d.n};
  const double area = static_cast<double>(kCallCost) / static_cast<double>(d.k + 512);
  const auto side = static_cast<int64_t>(std::sqrt(area));
  GemmBlock block{WholeSteps(side, d.m), WholeSteps(side, d.n)};
  block.rows = WholeSteps(fit(block.columns), d.m);
  block.columns = WholeSteps(fit(block.rows), d.n);
  return block;
}

int64_t DepthOf(const GemmDims& d, int64_t step) {
  const int64_t cost = CallCost(d);
  if (d.k < 2 * step || cost <= 2 * kCallCost) return d.k;
  return std::max<int64_t>(1, kCallCost / (1 + cost / d.k) / step) * step;
}

std::vector<GemmCall> CallsOf(const BatchedGemm& g, bool columns) {
  std::vector<GemmCall> calls;
  AddCalls({g}, columns, &calls);
  return calls;
}

}  // namespace heddle

// Broadcasting copies (expand, tile, …) and their gradients, which sum over the repeats.
#pragma once

#include "kernels/strided/strided_copy.h"

namespace heddle {

// Fills `out` from `x` (ranks aligned at the end, missing leading dimensions 1): every dimension
// of `out` is a whole multiple of x's.
struct Repeats {
  int rank = 0;                                       // of out
  std::array<int64_t, Shape::kMaxRank> times{}, n{};  // out dimension i = times[i] * n[i]
};

// Error unless `x` repeats to exactly `out`.
Status MakeRepeats(const Shape& x, const Shape& out, Repeats* repeats);
// out = x repeated.
Status RunRepeat(const KernelContext& ctx, const Tensor& x, Tensor& out);
// sum[...] = sum of grad over the repeats; `sum` has the unrepeated shape.
Status RunRepeatSum(const KernelContext& ctx, const Tensor& grad, Tensor& sum);
// The prepared copy of RunRepeat; nullptr when the shapes do not fit.
Result<std::unique_ptr<KernelState>> PrepareRepeat(const Tensor& x, const Shape& out);

}  // namespace heddle

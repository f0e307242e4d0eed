// Parts that loss and metric operators share: labels of any integer type, shape checks, loops.
#pragma once

#include <cmath>
#include <string>

#include "core/kernel_context.h"
#include "core/shapes.h"

namespace heddle {

// A shape seen as [outer, n, inner] around one axis.
struct AxisSplit {
  int64_t outer, n, inner;
};
inline AxisSplit SplitAt(const Shape& s, int axis) {
  return {s.Product(0, axis), s.rank() == 0 ? 1 : s[axis], s.Product(axis + 1, s.rank())};
}

// Integer labels as int64; copies only when they are of another type.
class Labels {
 public:
  Labels(KernelContext& ctx, const Tensor& t);
  const int64_t* data() const { return data_; }
  int64_t operator[](int64_t i) const { return data_[i]; }
  // Every label is `ignore` or within [0, classes).
  Status Check(int64_t n, int64_t classes, int64_t ignore) const;

 private:
  Tensor copy_;
  const int64_t* data_;
};

// fn(i) for every i of n, in parallel pieces where that pays.
template <typename Fn>
void ForEachIndex(KernelContext& ctx, int64_t n, Fn fn, int64_t grain = 8192) {
  ctx.ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i);
  });
}

// Two operands must have the same number of elements where both are known.
Status CheckSameCount(const ShapeContext& ctx, Key a, Key b);
// Both known and of equal dimensions, or not known.
Status CheckSameDims(const ShapeContext& ctx, Key a, Key b);

struct KeyPair {
  Key in, out;
};
// Each output, where present, has the shape and dtype of its input.
void SetOutsLike(ShapeContext& ctx, std::initializer_list<KeyPair> pairs);

// Paddle's bounds for logarithms of 0.
template <typename T>
T Tolerable(T x) {
  constexpr T kBound = static_cast<T>(1e20);
  return x == INFINITY ? kBound : x == -INFINITY ? -kBound : x;
}
template <typename T>
T SigmoidOf(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

// "none", "mean", "sum", "batchmean".
enum class LossReduction { kNone, kMean, kSum, kBatchMean };
Result<LossReduction> LossReductionOf(const std::string& name);

}  // namespace heddle

// Maps the index of an element to its offset in each operand: broadcasting, transposing, slicing
// and reducing are all strides. There are fewer than 2^31 elements, so that 32 bits suffice.
#pragma once

#include <cstdint>

#include "device/cuda/grid/grid_body.h"
#include "heddle/shape.h"

namespace heddle::HEDDLE_GRID {

inline constexpr int kMaxRank = Shape::kMaxRank;

// n / d by a multiplication, for n and d below 2^31. d may be 0, since empty tensors are never
// indexed.
struct FastDiv {
  uint32_t d = 1, factor = 1, shift = 0;

  FastDiv() = default;
  explicit FastDiv(int64_t divisor) : d(divisor == 0 ? 1 : static_cast<uint32_t>(divisor)) {
    while ((uint64_t{1} << shift) < d) ++shift;
    factor = static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d)) / d + 1);
  }
  HEDDLE_BODY uint32_t Divide(uint32_t n) const {
    const uint64_t high = (static_cast<uint64_t>(n) * factor) >> 32;
    return static_cast<uint32_t>((high + n) >> shift);
  }
};

// Elements in row-major order of up to kMaxRank dimensions, `K` operands.
template <int K>
struct Strides {
  int rank = 0;
  FastDiv dim[kMaxRank];
  int32_t step[K][kMaxRank] = {};
  int64_t numel = 1;

  // The offset of element i in operand k.
  struct Places {
    int32_t at[K];
  };
  HEDDLE_BODY Places At(uint32_t i) const {
    Places p = {};
    for (int r = rank - 1; r > 0; --r) {
      const uint32_t q = dim[r].Divide(i);
      const auto k = static_cast<int32_t>(i - q * dim[r].d);
      for (int o = 0; o < K; ++o) p.at[o] += k * step[o][r];
      i = q;
    }
    if (rank > 0)
      for (int o = 0; o < K; ++o) p.at[o] += static_cast<int32_t>(i) * step[o][0];
    return p;
  }

  // Adds a dimension behind the others; joins it with the last one where all operands allow.
  void Add(int64_t size, const int64_t (&steps)[K]) {
    numel *= size;
    if (size == 1) return;
    bool joins = rank > 0;
    for (int o = 0; joins && o < K; ++o) joins = step[o][rank - 1] == steps[o] * size;
    if (joins) {
      dim[rank - 1] = FastDiv(dim[rank - 1].d * size);
    } else {
      dim[rank++] = FastDiv(size);
    }
    for (int o = 0; o < K; ++o) step[o][rank - 1] = static_cast<int32_t>(steps[o]);
  }
};

// Steps of a row-major tensor.
struct Steps {
  int64_t at[kMaxRank] = {};
};
inline Steps RowMajor(const Shape& s) {
  Steps steps;
  int64_t step = 1;
  for (int d = s.rank() - 1; d >= 0; --d) {
    steps.at[d] = step;
    step *= s[d];
  }
  return steps;
}

// Steps of an operand of shape `from`, whose first dimension stands at dimension `first` of `to`,
// along the dimensions of `to`; 0 where it repeats. Ones that reach beyond the end do not count.
inline Steps Spread(const Shape& from, const Shape& to, int first) {
  const Steps own = RowMajor(from);
  Steps steps;
  for (int d = 0; d < from.rank(); ++d)
    if (const int at = first + d; at >= 0 && at < to.rank() && from[d] != 1)
      steps.at[at] = own.at[d];
  return steps;
}

// The position of each operand's first dimension in the result of a broadcast. The operand of
// greater rank starts at 0; the other one at `axis`, or so that both end together for -1.
struct Alignment {
  int x = 0, y = 0;
};
inline Alignment Align(const Shape& x, const Shape& y, int64_t axis) {
  Alignment a;
  if (x == y) return a;  // whatever the axis
  const bool x_larger = x.rank() >= y.rank();
  const Shape &large = x_larger ? x : y, &small = x_larger ? y : x;
  (x_larger ? a.y : a.x) = axis < 0 ? large.rank() - small.rank() : static_cast<int>(axis);
  return a;
}

// The elements of `shape`, operands along it by `steps`.
template <int K>
Strides<K> MakeStrides(const Shape& shape, const Steps (&steps)[K]) {
  Strides<K> s;
  for (int d = 0; d < shape.rank(); ++d) {
    int64_t at[K];
    for (int o = 0; o < K; ++o) at[o] = steps[o].at[d];
    s.Add(shape[d], at);
  }
  return s;
}

}  // namespace heddle::HEDDLE_GRID

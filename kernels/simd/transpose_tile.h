// A square of elements, one vector wide, transposed in registers.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/simd/vector.h"

namespace heddle::simd {
namespace {

// Elements of a and b in alternation, from kFrom on.
template <int kFrom, typename T, int... kI>
HEDDLE_SIMD_INLINE T Interleave(T a, T b, std::integer_sequence<int, kI...>) {
  constexpr int kLanes = sizeof...(kI);
  return __builtin_shufflevector(a, b, (kFrom + kI / 2 + kI % 2 * kLanes)...);
}

// `count` rows of kLanes elements (the rest zeros), transposed: rounds that interleave the
// halves.
template <typename V>
HEDDLE_SIMD_INLINE void TransposeTile(int64_t count, const float* from, int64_t from_step,
                                      float* to) {
  using T = typename V::T;
  constexpr int kLanes = V::kLanes;
  constexpr std::make_integer_sequence<int, kLanes> kOrder{};
  T rows[kLanes], next[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    rows[i] = V::Zero();
    if (i < count) rows[i] = V::Load(from + i * from_step);
  }
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = Interleave<0>(rows[i], rows[i + kLanes / 2], kOrder);
      next[2 * i + 1] = Interleave<kLanes / 2>(rows[i], rows[i + kLanes / 2], kOrder);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) V::Store(to + i * kLanes, rows[i]);
}

}  // namespace
}  // namespace heddle::simd

// The most multiply-adds that a core can do: enough sums to hide their latency, and no memory.
#pragma once

#include "kernels/simd/vector.h"

namespace heddle::simd {
namespace {

// See Microkernels::multiply_adds.
template <typename V>
struct PeakLoop {
  static constexpr int kSums = 12;
  static float Run(int rounds) {
    typename V::T sum[kSums];
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sum[i] = V::Set(1.f + i);  // of equal ones, compilers make one
    const auto factor = V::Set(0.999f), term = V::Set(0.001f);
    for (int r = 0; r < rounds; ++r)
#pragma GCC unroll 12
      for (int i = 0; i < kSums; ++i) sum[i] = V::Fma(sum[i], factor, term);
#pragma GCC unroll 12
    for (int i = 1; i < kSums; ++i) sum[0] = V::Add(sum[0], sum[i]);
    float lanes[V::kLanes];
    V::Store(lanes, sum[0]);
    return lanes[0];
  }
};

}  // namespace
}  // namespace heddle::simd

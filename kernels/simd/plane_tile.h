// Convolution to a few channels: vectors of neighbouring pixels of a row, where a vector of
// channels would be mostly empty.
#pragma once

#include "kernels/simd/microkernels.h"
#include "kernels/simd/vector.h"

namespace heddle::simd {
namespace {

template <typename V>
struct PlaneTiles {
  using T = typename V::T;
  static constexpr int kLanes = V::kLanes;

  // kVectors vectors of pixels of each channel, from pixel x on; `pixels` are stored.
  template <int kChannels, int kVectors>
  static HEDDLE_SIMD_INLINE void Block(const PlaneTile& t, int64_t x, int64_t pixels) {
    T sum[kChannels][kVectors];
#pragma GCC unroll 8
    for (int c = 0; c < kChannels; ++c)
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) sum[c][i] = V::Set(t.bias[c]);
    for (int64_t p = 0; p < t.planes; ++p) {
      const float* filter = t.filter + p * t.filter_plane_step;
      for (int64_t r = 0; r < t.rows; ++r) {
        const float* in = t.in + p * t.plane_step + r * t.row_step + x;
        for (int64_t k = 0; k < t.columns; ++k, in += t.column_step, filter += kChannels) {
          T at[kVectors];
#pragma GCC unroll 8
          for (int i = 0; i < kVectors; ++i) at[i] = V::Load(in + i * kLanes);
#pragma GCC unroll 8
          for (int c = 0; c < kChannels; ++c) {
            const T tap = V::Set(filter[c]);
#pragma GCC unroll 8
            for (int i = 0; i < kVectors; ++i) sum[c][i] = V::Fma(at[i], tap, sum[c][i]);
          }
        }
      }
    }
#pragma GCC unroll 8
    for (int c = 0; c < kChannels; ++c) {
      if (c >= t.channels) break;
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) {
        float* to = t.out + c * t.out_step + x + i * kLanes;
        const int64_t left = pixels - i * kLanes;
        if (left >= kLanes)
          V::Store(to, sum[c][i]);
        else if (left > 0)
          V::StoreSome(to, sum[c][i], static_cast<int>(left));
      }
    }
  }

  template <int kChannels>
  static void Run(const PlaneTile& t, int64_t pixels) {
    constexpr int kFit = 2 * V::kRows / kChannels;  // sums that registers hold
    constexpr int kVectors = kFit > 8 ? 8 : kFit < 1 ? 1 : kFit;
    int64_t x = 0;
    for (; pixels - x > 2 * kLanes; x += kVectors * kLanes)
      Block<kChannels, kVectors>(t, x, pixels - x);
    for (; x < pixels; x += kLanes) Block<kChannels, 1>(t, x, pixels - x);
  }
};

}  // namespace
}  // namespace heddle::simd

// Convolution by its definition, and products as the case of one tap: a block of pixels times a
// panel of the filter, with the sums in registers.
//
// It has a loop of its own beside gemm_tile.h: its pixels are at equal distances, so that three
// registers address all of them, where a general A takes a pointer for each row.
#pragma once

#include <limits>

#include "kernels/simd/microkernels.h"
#include "kernels/simd/vector.h"

namespace heddle::simd {
namespace {

template <typename V>
struct DirectTiles {
  using T = typename V::T;
  static constexpr int kLanes = V::kLanes;
  template <int kVectors>
  static constexpr int kBlockPixels = 2 * V::kRows / kVectors;

  // Keeps n in a register, so that addresses are a base plus a multiple of it. Otherwise compilers
  // keep a pointer for each pixel, in memory.
  static HEDDLE_SIMD_INLINE int64_t InRegister(int64_t n) {
    __asm__("" : "+r"(n));
    return n;
  }

  // sum += the block's products. kAhead: prefetches from d.ahead on, one step with each row of the
  // filter.
  template <int kVectors, int kPixels, bool kAhead>
  static HEDDLE_SIMD_INLINE void Sums(const DirectTile& d, T (&sum)[kPixels][kVectors]) {
    const float* ahead = d.ahead;
    constexpr int kBases = (kPixels + 7) / 8;
    const int64_t s = d.pixel_step * static_cast<int64_t>(sizeof(float));
    const int64_t s3 = InRegister(3 * s), s5 = InRegister(5 * s), s7 = InRegister(7 * s);
    for (int64_t row = 0; row < d.rows; ++row) {
      for (int64_t column = 0; column < d.columns; ++column) {
        const char* base[kBases];
        base[0] =
            reinterpret_cast<const char*>(d.pixels + row * d.row_step + column * d.column_step);
#pragma GCC unroll 4
        for (int i = 1; i < kBases; ++i) base[i] = base[i - 1] + 8 * s;
        const float* filter = d.filter + row * d.filter_row_step + column * d.filter_column_step;
#pragma GCC unroll 1
        for (int64_t k = 0; k < d.depth; ++k, filter += kVectors * kLanes) {
          T b[kVectors];
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) b[v] = V::Load(filter + v * kLanes);
          if constexpr (kAhead) {
            V::Prefetch(ahead);
            ahead += d.ahead_step;
          }
#pragma GCC unroll 28
          for (int p = 0; p < kPixels; ++p) {
            const int64_t offsets[8] = {0, s, 2 * s, s3, 4 * s, s5, 2 * s3, s7};
            const T x = V::Set(*reinterpret_cast<const float*>(base[p / 8] + offsets[p % 8]));
#pragma GCC unroll 2
            for (int v = 0; v < kVectors; ++v) sum[p][v] = V::Fma(x, b[v], sum[p][v]);
          }
#pragma GCC unroll 4
          for (int i = 0; i < kBases; ++i) base[i] += sizeof(float);
        }
      }
    }
  }

  template <int kVectors, int kPixels>
  static HEDDLE_SIMD_INLINE void Finish(const DirectTile& d, T (&sum)[kPixels][kVectors]) {
    const int last = d.channels - (kVectors - 1) * kLanes;
    if (d.residual != nullptr)
#pragma GCC unroll 28
      for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v)
          sum[p][v] = V::Add(sum[p][v], V::LoadSome(d.residual + p * d.residual_step + v * kLanes,
                                                    v + 1 < kVectors ? kLanes : last));
    constexpr float kUnbounded = std::numeric_limits<float>::infinity();
    // Max returns its second operand if one of them is NaN.
    if (d.nan_is_low) {
      const T low = V::Set(d.low);
#pragma GCC unroll 28
      for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[p][v] = V::Max(sum[p][v], low);
    } else if (d.low > -kUnbounded && d.high >= kUnbounded) {
      const T low = V::Set(d.low);
#pragma GCC unroll 28
      for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[p][v] = V::Max(low, sum[p][v]);
    }
    if (d.high < kUnbounded) {
      const T low = V::Set(d.low), high = V::Set(d.high);
#pragma GCC unroll 28
      for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[p][v] = V::Min(high, V::Max(low, sum[p][v]));
    }
    if (d.gated) {
      const T factor = V::Set(d.gate_factor), offset = V::Set(d.gate_offset);
      const T limit = V::Set(d.gate_limit);
      if (d.linear && d.shift == 0) {
        const T scale = V::Set(d.scale);
#pragma GCC unroll 28
        for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) {
            const T gate = V::Min(limit, V::Max(V::Zero(), V::Fma(factor, sum[p][v], offset)));
            sum[p][v] = V::Mul(scale, V::Mul(sum[p][v], gate));
          }
        return;
      }
#pragma GCC unroll 28
      for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v)
          sum[p][v] = V::Mul(sum[p][v],
                             V::Min(limit, V::Max(V::Zero(), V::Fma(factor, sum[p][v], offset))));
    }
    if (!d.linear) return;
    const T scale = V::Set(d.scale), shift = V::Set(d.shift);
#pragma GCC unroll 28
    for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[p][v] = V::Fma(scale, sum[p][v], shift);
  }

  template <int kVectors, int kPixels, bool kAhead>
  static void Block(const DirectTile& d) {
    T sum[kPixels][kVectors];
    const int last = d.channels - (kVectors - 1) * kLanes;  // channels of the last vector
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const T first = d.bias == nullptr
                          ? V::Zero()
                          : V::LoadSome(d.bias + v * kLanes, v + 1 < kVectors ? kLanes : last);
#pragma GCC unroll 28
      for (int p = 0; p < kPixels; ++p) sum[p][v] = first;
    }
    Sums<kVectors, kPixels, kAhead>(d, sum);
    Finish<kVectors, kPixels>(d, sum);
#pragma GCC unroll 28
    for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const int n = v + 1 < kVectors ? kLanes : last;
        float* to = d.out + p * d.out_step + v * kLanes;
        if (n == kLanes)
          V::Store(to, sum[p][v]);
        else
          V::StoreSome(to, sum[p][v], n);
      }
  }

  template <int kVectors, int kPixels, bool kAhead>
  static void Pick(const DirectTile& d, int pixels) {
    if (pixels == kPixels)
      Block<kVectors, kPixels, kAhead>(d);
    else if constexpr (kPixels > 1)
      Pick<kVectors, kPixels - 1, kAhead>(d, pixels);
  }

  // In blocks of nearly equal size.
  template <int kVectors, bool kAhead = false>
  static void Run(DirectTile d, int64_t pixels) {
    for (int64_t blocks = (pixels + kBlockPixels<kVectors> - 1) / kBlockPixels<kVectors>;
         blocks > 0; --blocks) {
      const int64_t now = (pixels + blocks - 1) / blocks;
      Pick<kVectors, kBlockPixels<kVectors>, kAhead>(d, static_cast<int>(now));
      if constexpr (kAhead) d.ahead += d.depth * d.ahead_step;
      d.pixels += now * d.pixel_step;
      d.out += now * d.out_step;
      if (d.residual != nullptr) d.residual += now * d.residual_step;
      pixels -= now;
    }
  }
};

}  // namespace
}  // namespace heddle::simd

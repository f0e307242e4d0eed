// The loops of nbits.h, for a vector B: lanes, floats, and fields of bytes as floats. No function
// here has external linkage (microkernel_table.h says why).
#pragma once

#include <cstdint>

#include "kernels/simd/integers/nbits.h"

namespace heddle::simd {
namespace {

template <typename B>
struct NbitLoops {
  using T = typename B::T;
  static constexpr int kLanes = B::kLanes;

  struct Pair {
    T low, high;  // columns [0, lanes) and [lanes, 2 lanes)
  };
  // Row `r` of the block.
  template <int kBits>
  static inline __attribute__((always_inline)) Pair Row(const uint8_t* values, int64_t r) {
    if constexpr (kBits == 8) {
      const uint8_t* const p = values + r * 2 * kLanes;
      return {B::Signed(p), B::Signed(p + kLanes)};
    } else if constexpr (kBits == 4) {
      const auto bytes = B::Bytes(values + r * kLanes);
      return {B::template Nibble<0>(bytes), B::template Nibble<4>(bytes)};
    } else {
      const auto bytes = B::Bytes(values + r / 2 * kLanes);
      if (r % 2 == 0) return {B::template Crumb<0>(bytes), B::template Crumb<2>(bytes)};
      return {B::template Crumb<4>(bytes), B::template Crumb<6>(bytes)};
    }
  }

  template <int kBits>
  static void WidenBits(const NbitRows& b, int vectors, float* to) {
    const T scale[2] = {B::Load(b.scale), B::Load(b.scale + kLanes)};
    const T zero[2] = {B::Load(b.zero), B::Load(b.zero + kLanes)};
    const int64_t width = vectors * kLanes;
    for (int64_t r = 0; r < b.rows; ++r) {
      const Pair row = Row<kBits>(b.values, b.first + r);
      B::Store(to + r * width, B::Mul(B::Sub(row.low, zero[0]), scale[0]));
      if (vectors == 2)
        B::Store(to + r * width + kLanes, B::Mul(B::Sub(row.high, zero[1]), scale[1]));
    }
  }
  static void Widen(int bits, const NbitRows& b, int vectors, float* to) {
    if (bits == 8) return WidenBits<8>(b, vectors, to);
    if (bits == 4) return WidenBits<4>(b, vectors, to);
    WidenBits<2>(b, vectors, to);
  }

  template <int kBits, int kCount>
  static void MultiplyRows(const NbitRows& b, const NbitFactor& x, float* sums) {
    // Sums of so many rows that run side by side hide the latency of additions.
    constexpr int kSide = kCount == 1 ? 4 : 2;
    T sum[kSide][kCount][2];
    for (auto& side : sum)
      for (auto& row : side) row[0] = row[1] = B::Zero();
    const auto add = [&](T(&side)[kCount][2], int64_t r) __attribute__((always_inline)) {
      const Pair row = Row<kBits>(b.values, b.first + r);
      for (int i = 0; i < kCount; ++i) {
        const T v = B::Set(x.values[i * x.step + r]);
        side[i][0] = B::Fma(v, row.low, side[i][0]);
        side[i][1] = B::Fma(v, row.high, side[i][1]);
      }
    };
    int64_t r = 0;
    for (; r + kSide <= b.rows; r += kSide)
      for (int s = 0; s < kSide; ++s) add(sum[s], r + s);
    for (; r < b.rows; ++r) add(sum[0], r);
    for (int i = 0; i < kCount; ++i)
      for (int v = 0; v < 2; ++v) {
        T one = sum[0][i][v];
        for (int s = 1; s < kSide; ++s) one = B::Add(one, sum[s][i][v]);
        if (x.totals != nullptr)
          one = B::Sub(one,
                       B::Mul(B::Set(x.totals[i * x.totals_step]), B::Load(b.zero + v * kLanes)));
        float* const to = sums + (2 * i + v) * kLanes;
        B::Store(to, B::Fma(one, B::Load(b.scale + v * kLanes), B::Load(to)));
      }
  }
  template <int kBits>
  static void MultiplyBits(const NbitRows& b, const NbitFactor& x, float* sums) {
    switch (x.count) {
      case 1:
        return MultiplyRows<kBits, 1>(b, x, sums);
      case 2:
        return MultiplyRows<kBits, 2>(b, x, sums);
      case 3:
        return MultiplyRows<kBits, 3>(b, x, sums);
      default:
        return MultiplyRows<kBits, 4>(b, x, sums);
    }
  }
  static void Multiply(int bits, const NbitRows& b, const NbitFactor& x, float* sums) {
    if (bits == 8) return MultiplyBits<8>(b, x, sums);
    if (bits == 4) return MultiplyBits<4>(b, x, sums);
    MultiplyBits<2>(b, x, sums);
  }

  static constexpr NbitKernels kTable{kLanes, Widen, Multiply};
};

}  // namespace
}  // namespace heddle::simd

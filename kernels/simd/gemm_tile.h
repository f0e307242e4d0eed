// The register tile of matrix products: some rows of A times some vectors of columns of B, with all
// sums in registers. Products, Winograd's method, attention and recurrent layers share it.
//
// The sum of an element is made in the order of k by fused multiply-adds, so that it depends
// neither on the tile's size nor on the width of the vectors.
#pragma once

#include <cstdint>

#include "kernels/simd/vector.h"

namespace heddle::simd {
namespace {

// Steps in elements: between rows of A and between its columns; between rows of B and between
// vectors of such a row.
template <typename E>
struct TileOperands {
  const E* a;
  int64_t a_row, a_column;
  const E* b;
  int64_t b_row, b_vector;
};

// sum[r][v] += a[r][k] * b[k][v] for k = 0 … depth - 1. prefetch(row of B) is called once per k.
template <typename V, int kRows, int kVectors, typename Prefetch>
HEDDLE_SIMD_INLINE void MultiplyAdd(int64_t depth, TileOperands<typename V::Element> o,
                                    typename V::T (&sum)[kRows][kVectors],
                                    const Prefetch& prefetch) {
  using T = typename V::T;
  const auto* b = o.b;
  for (int64_t k = 0; k < depth; ++k, b += o.b_row) {
    prefetch(b);
    // The shorter side stays in registers, and the loop runs over the other one.
    if constexpr (kRows < kVectors) {
      T x[kRows];
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) x[r] = V::Set(o.a[r * o.a_row + k * o.a_column]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const T y = V::Load(b + v * o.b_vector);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) sum[r][v] = V::Fma(x[r], y, sum[r][v]);
      }
    } else {
      T y[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) y[v] = V::Load(b + v * o.b_vector);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const T x = V::Set(o.a[r * o.a_row + k * o.a_column]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sum[r][v] = V::Fma(x, y[v], sum[r][v]);
      }
    }
  }
}
template <typename V, int kRows, int kVectors>
HEDDLE_SIMD_INLINE void MultiplyAdd(int64_t depth, TileOperands<typename V::Element> o,
                                    typename V::T (&sum)[kRows][kVectors]) {
  MultiplyAdd<V>(depth, o, sum, [](const auto*) __attribute__((always_inline)){});
}

// The tile of a product: c = a * b.
template <typename V, int kRows, int kVectors>
HEDDLE_SIMD_INLINE void ProductTile(int64_t depth, TileOperands<typename V::Element> o,
                                    typename V::Element* c, int64_t c_row) {
  typename V::T sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[r][v] = V::Zero();
  MultiplyAdd<V>(depth, o, sum);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) V::Store(c + r * c_row + v * V::kLanes, sum[r][v]);
}

// See GemmTileFn.
template <typename V>
struct GemmTiles {
  using T = typename V::T;
  static constexpr int kLanes = V::kLanes;

  template <int kVectors, int kRows>
  static HEDDLE_SIMD_INLINE void Block(int64_t depth, const float* a, int64_t a_step,
                                       const float* panel, float* c, int64_t c_step) {
    constexpr int kWidth = kVectors * kLanes;
    T sum[kRows][kVectors];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = V::Zero();
    const int64_t next = depth * kWidth;  // the panel after this one comes from further away
    MultiplyAdd<V>(
        depth, {a, a_step, 1, panel, kWidth, kLanes},
        sum, [&](const float* row) __attribute__((always_inline)) {
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) V::Prefetch(row + next + v * kLanes);
        });
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) V::Store(c + r * c_step + v * kLanes, sum[r][v]);
  }
  template <int kVectors, int kRows>
  static void Rows(int rows, int64_t depth, const float* a, int64_t a_step, const float* panel,
                   float* c, int64_t c_step) {
    if (rows == kRows)
      Block<kVectors, kRows>(depth, a, a_step, panel, c, c_step);
    else if constexpr (kRows > 1)
      Rows<kVectors, kRows - 1>(rows, depth, a, a_step, panel, c, c_step);
  }

  // In blocks of nearly equal size.
  template <int kVectors>
  static void Multiply(int64_t rows, int64_t depth, const float* a, int64_t a_step,
                       const float* panel, float* c, int64_t c_step) {
    int64_t blocks = (rows + V::kRows - 1) / V::kRows;
    for (; blocks > 0; --blocks) {
      const int64_t now = (rows + blocks - 1) / blocks;
      Rows<kVectors, V::kRows>(static_cast<int>(now), depth, a, a_step, panel, c, c_step);
      a += now * a_step;
      c += now * c_step;
      rows -= now;
    }
  }
};

template <typename V, int kVectors>
void WidenRows(int64_t rows, const int8_t* from, const float* factors, float* to) {
  constexpr int kLanes = V::kLanes;
  typename V::T factor[kVectors];
  for (int v = 0; v < kVectors; ++v) factor[v] = V::Load(factors + v * kLanes);
  for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v, from += kLanes, to += kLanes)
      V::Store(to, V::Mul(factor[v], V::Widen(from)));
}
// See Microkernels::widen_int8.
template <typename V>
void WidenInt8(int64_t rows, int vectors, const int8_t* from, const float* factors, float* to) {
  if (vectors == 2)
    WidenRows<V, 2>(rows, from, factors, to);
  else
    WidenRows<V, 1>(rows, from, factors, to);
}

}  // namespace
}  // namespace heddle::simd

// Recurrent layers: a strip of hidden units with all their gates, for one step of time or for the
// product with the inputs of all steps.
//
// Source: gates interleaved by strip, with the sums of all gates of a unit in registers until they
// are activated, are the fused cells of Appleyard et al. (2016).
#pragma once

#include <cstdint>

#include "kernels/simd/gemm_tile.h"
#include "kernels/simd/recurrent_step.h"
#include "kernels/simd/vector_math.h"

namespace heddle::simd {
namespace {

template <typename V, RnnMode kMode>
struct RecurrentTiles {
  using T = typename V::T;
  static constexpr int kLanes = V::kLanes;
  // Rows of a step's tile, with all columns of a strip, and of a projection's, which takes half of
  // the columns: as many as keep all sums in registers.
  static constexpr int kStepRows = 3, kProjectRows = 6;
  static constexpr int kPrefetchRows = 8;  // rows of weights ahead

  // Vectors of units in a strip: enough sums to hide the latency of a multiply-add.
  static constexpr int kVectors = kMode == RnnMode::kTanh || kMode == RnnMode::kRelu ? 4
                                  : kLanes == 16                                     ? 2
                                                                                     : 1;
  static constexpr int kGates = kMode == RnnMode::kLstm ? 4 : kMode == RnnMode::kGru ? 3 : 1;
  static constexpr int kUnits = kVectors * kLanes;
  static constexpr int kColumns = kVectors * kGates, kWidth = kColumns * kLanes;

  // out[r] = from[r] + a[r] * w, for kRows rows of kCols vectors; w's rows have kWidth floats.
  // kBack: from the last row of w to the first.
  template <int kCols, int kRows, bool kBack>
  static HEDDLE_SIMD_INLINE void Tile(int64_t k, const float* a, int64_t a_step, const float* w,
                                      const float* from, int64_t from_step, float* out,
                                      int64_t out_step) {
    T sum[kRows][kCols];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < kCols; ++v) sum[r][v] = V::Load(from + r * from_step + v * kLanes);
    constexpr int64_t kStep = kBack ? -kWidth : kWidth;
    const int64_t first = kBack ? k - 1 : 0;
    MultiplyAdd<V>(
        k, {a + first, a_step, kBack ? -1 : 1, w + first * kWidth, kStep, kLanes}, sum,
        [](const float* row) __attribute__((always_inline)) {
          // A lone row reads weights faster than they come without a prefetch.
          if constexpr (kRows == 1)
#pragma GCC unroll 8
            for (int v = 0; v < kCols; ++v)
              __builtin_prefetch(row + kPrefetchRows * kStep + v * kLanes);
        });
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < kCols; ++v) V::Store(out + r * out_step + v * kLanes, sum[r][v]);
  }

  // At most kMost rows at a time.
  template <int kCols, int kMost, bool kBack>
  static HEDDLE_SIMD_INLINE void Rows(int64_t rows, int64_t k, const float* a, int64_t a_step,
                                      const float* w, const float* from, int64_t from_step,
                                      float* out, int64_t out_step) {
    for (; rows >= kMost; rows -= kMost) {
      Tile<kCols, kMost, kBack>(k, a, a_step, w, from, from_step, out, out_step);
      a += kMost * a_step, from += kMost * from_step, out += kMost * out_step;
    }
    if constexpr (kMost > 1) {
      constexpr int kNext = kMost > 3 ? 3 : kMost - 1;
      if (rows > 0)
        Rows<kCols, kNext, kBack>(rows, k, a, a_step, w, from, from_step, out, out_step);
    }
  }

  // The new state of one sequence from the gates' sums `z`; `x` is GRU's input part of the
  // candidate.
  static HEDDLE_SIMD_INLINE void Activate(const float* z, const float* x, const float* h_prev,
                                          float* c, float* h) {
#pragma GCC unroll 4
    for (int i = 0; i < kUnits; i += kLanes) {
      const auto gate = [&](int g) __attribute__((always_inline)) {
        return V::Load(z + g * kUnits + i);
      };
      if constexpr (kMode == RnnMode::kTanh) {
        V::Store(h + i, Tanh<V>(gate(0)));
      } else if constexpr (kMode == RnnMode::kRelu) {
        V::Store(h + i, V::Max(V::Zero(), gate(0)));
      } else if constexpr (kMode == RnnMode::kLstm) {
        const T in = Gate<V>(gate(0)), forget = Gate<V>(gate(1));
        const T cell = V::Fma(forget, V::Load(c + i), V::Mul(in, Tanh<V>(gate(2))));
        V::Store(c + i, cell);
        V::Store(h + i, V::Mul(Gate<V>(gate(3)), Tanh<V>(cell)));
      } else {
        const T reset = Gate<V>(gate(0)), update = Gate<V>(gate(1));
        const T candidate = Tanh<V>(V::Fma(reset, gate(2), V::Load(x + i)));
        V::Store(h + i, V::Fma(V::Sub(V::Set(1.f), update), candidate,
                               V::Mul(update, V::Load(h_prev + i))));
      }
    }
  }

  static HEDDLE_SIMD_INLINE void Copy(const float* from, int64_t n, float* to) {
    __builtin_memcpy(to, from, sizeof(float) * static_cast<size_t>(n));
  }

  // See StripKernel::step.
  static void Step(const StripStep& s) {
    alignas(64) float sums[kStepRows][kWidth];
    alignas(64) float next[kUnits];
    const int64_t units = kUnits < s.hidden - s.unit ? kUnits : s.hidden - s.unit;
    for (int64_t b0 = 0; b0 < s.batch; b0 += kStepRows) {
      const int64_t rows = kStepRows < s.batch - b0 ? kStepRows : s.batch - b0;
      for (int64_t r = 0; r < rows; ++r) {
        Copy(s.gates + (b0 + r) * s.gates_step, kWidth, sums[r]);
        if constexpr (kMode == RnnMode::kGru) Copy(s.recurrent_bias, kUnits, sums[r] + 2 * kUnits);
      }
      const float* h = s.h + b0 * s.padded;
      if (s.back)
        Rows<kColumns, kStepRows, true>(rows, s.hidden, h, s.padded, s.weights, sums[0], kWidth,
                                        sums[0], kWidth);
      else
        Rows<kColumns, kStepRows, false>(rows, s.hidden, h, s.padded, s.weights, sums[0], kWidth,
                                         sums[0], kWidth);
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t b = b0 + r, at = b * s.padded;
        float* out = s.out + b * s.out_step;
        if (s.lengths != nullptr && s.t >= s.lengths[b]) {
          Copy(s.h_prev + at, kUnits, s.h_next + at);
          for (int64_t i = 0; i < units; ++i) out[i] = 0.f;
          continue;
        }
        Activate(sums[r], s.gates + b * s.gates_step + 2 * kUnits, s.h_prev + at, s.c + at, next);
        Copy(next, kUnits, s.h_next + at);
        Copy(next, units, out);
      }
    }
  }

  // See StripKernel::project.
  static void Project(int64_t rows, int64_t k, const float* a, int64_t a_step, const float* w,
                      const float* bias, float* out, int64_t out_step) {
    if constexpr (kColumns % 2 == 0) {
      constexpr int kHalf = kColumns / 2;
      Rows<kHalf, kProjectRows, false>(rows, k, a, a_step, w, bias, 0, out, out_step);
      w += kHalf * kLanes, bias += kHalf * kLanes, out += kHalf * kLanes;
      Rows<kHalf, kProjectRows, false>(rows, k, a, a_step, w, bias, 0, out, out_step);
    } else {
      Rows<kColumns, kStepRows, false>(rows, k, a, a_step, w, bias, 0, out, out_step);
    }
  }

  static constexpr StripKernel Kernel() { return {kUnits, Project, Step}; }
};

}  // namespace
}  // namespace heddle::simd

// The transforms of Winograd convolutions F(4x4, 3x3) and F(2x2, 5x5), and of rows, F(4, 3) and
// F(2, 5).
//
// The interpolation points are 0, ±1/√2, ±√2 and infinity, whose rounding errors are a third of
// those of the usual 0, ±1, ±2.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/simd/activation.h"
#include "kernels/simd/microkernels.h"

namespace heddle::simd {
namespace {

constexpr float kRootHalf = 0.70710678118654752f;  // 1/√2
constexpr float kRootTwo = 1.41421356237309505f;   // √2

template <typename V>
struct WinogradTiles {
  using T = typename V::T;
  static constexpr int kLanes = V::kLanes;
  static constexpr int kPanel = 2 * kLanes;

  // Transforms six inputs, `step` vectors apart, along one dimension.
  static HEDDLE_SIMD_INLINE void Spread(const T* d, int step, T* t, int to) {
    const T d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step],
            d5 = d[5 * step];
    const T sum = V::Set(-2.5f);
    const T even1 = V::Fma(V::Set(-2.f), d2, d4);
    const T odd1 = V::Fma(V::Set(kRootHalf), d3, V::Mul(V::Set(-kRootTwo), d1));
    const T even2 = V::Fma(V::Set(-0.5f), d2, d4);
    const T odd2 = V::Fma(V::Set(kRootTwo), d3, V::Mul(V::Set(-kRootHalf), d1));
    t[0] = V::Add(V::Fma(sum, d2, d4), d0);
    t[to] = V::Add(even1, odd1);
    t[2 * to] = V::Sub(even1, odd1);
    t[3 * to] = V::Add(even2, odd2);
    t[4 * to] = V::Sub(even2, odd2);
    t[5 * to] = V::Add(V::Fma(sum, d3, d5), d1);
  }

  // Transforms six products along one dimension to kTile outputs, four or two.
  template <int kTile>
  static HEDDLE_SIMD_INLINE void Gather(const T* m, int step, T* o, int to) {
    const T sum1 = V::Add(m[step], m[2 * step]), diff1 = V::Sub(m[step], m[2 * step]);
    const T sum2 = V::Add(m[3 * step], m[4 * step]), diff2 = V::Sub(m[3 * step], m[4 * step]);
    o[0] = V::Add(V::Add(m[0], sum1), sum2);
    const T odd = V::Fma(V::Set(kRootHalf), diff1, V::Mul(V::Set(kRootTwo), diff2));
    if constexpr (kTile == 2) {
      o[to] = V::Add(odd, m[5 * step]);
      return;
    }
    o[to] = odd;
    o[2 * to] = V::Fma(V::Set(0.5f), sum1, V::Mul(V::Set(2.f), sum2));
    o[3 * to] = V::Add(V::Fma(V::Set(0.5f * kRootHalf), diff1, V::Mul(V::Set(2 * kRootTwo), diff2)),
                       m[5 * step]);
  }

  // 0 for numbers below kWinogradMost, else NaN.
  static HEDDLE_SIMD_INLINE T AddFault(T x, T fault) {
    constexpr float kGreatest = 3.4e38f;
    return V::Fma(V::Mul(x, V::Set(kGreatest / kWinogradMost)), V::Zero(), fault);
  }
  static bool IsFinite(T fault) {
    float lanes[kLanes];
    V::Store(lanes, fault);
    uint32_t bits = 0;
    for (const float lane : lanes) bits |= std::bit_cast<uint32_t>(lane);
    return bits == 0;
  }

  // Transforms one vector of channels. kWhole: all pixels lie in the image, and the vector is full.
  // Four points depend on all pixels of the window: `fault` becomes NaN if one is NaN, infinite or
  // not below kWinogradMost.
  template <bool kWhole>
  static HEDDLE_SIMD_INLINE T SpreadTile(const WinogradInput& tile, int64_t c, int n, float* out,
                                         int64_t point_step, T fault) {
    T half[kWinogradPoints];
#pragma GCC unroll 6
    for (int j = 0; j < kWinogradWindow; ++j) {
      T d[kWinogradWindow];
#pragma GCC unroll 6
      for (int i = 0; i < kWinogradWindow; ++i) {
        const float* pixel = tile.data + i * tile.row_step + j * tile.pixel_step + c;
        if constexpr (kWhole)
          d[i] = V::Load(pixel);
        else
          d[i] = i >= tile.row_begin && i < tile.row_end && j >= tile.column_begin &&
                         j < tile.column_end
                     ? V::LoadSome(pixel, n)
                     : V::Zero();
      }
      Spread(d, 1, half + j, kWinogradWindow);
    }
#pragma GCC unroll 6
    for (int i = 0; i < kWinogradWindow; ++i) {
      T row[kWinogradWindow];
      Spread(half + i * kWinogradWindow, 1, row, 1);
#pragma GCC unroll 6
      for (int j = 0; j < kWinogradWindow; ++j)
        V::Store(out + (i * kWinogradWindow + j) * point_step + c, row[j]);
      if (i == 0 || i == kWinogradWindow - 1)
        fault = AddFault(row[0], AddFault(row[kWinogradWindow - 1], fault));
    }
    return fault;
  }

  // The same for a window of one row.
  template <bool kWhole>
  static HEDDLE_SIMD_INLINE T SpreadRow(const WinogradInput& tile, int64_t c, int n, float* out,
                                        int64_t point_step, T fault) {
    T d[kWinogradWindow], points[kWinogradWindow];
#pragma GCC unroll 6
    for (int j = 0; j < kWinogradWindow; ++j) {
      const float* pixel = tile.data + j * tile.pixel_step + c;
      if constexpr (kWhole)
        d[j] = V::Load(pixel);
      else
        d[j] = j >= tile.column_begin && j < tile.column_end ? V::LoadSome(pixel, n) : V::Zero();
    }
    Spread(d, 1, points, 1);
#pragma GCC unroll 6
    for (int j = 0; j < kWinogradWindow; ++j) V::Store(out + j * point_step + c, points[j]);
    return AddFault(points[0], AddFault(points[kWinogradWindow - 1], fault));
  }

  static bool TransformRowInput(const WinogradInput& tile, int64_t channels, float* out,
                                int64_t point_step) {
    T fault = V::Zero();
    int64_t c = 0;
    if (tile.column_begin == 0 && tile.column_end == kWinogradWindow)
      for (; c + kLanes <= channels; c += kLanes)
        fault = SpreadRow<true>(tile, c, kLanes, out, point_step, fault);
    for (; c < channels; c += kLanes)
      fault =
          SpreadRow<false>(tile, c, channels - c < kLanes ? static_cast<int>(channels - c) : kLanes,
                           out, point_step, fault);
    return IsFinite(fault);
  }

  static bool TransformInput(const WinogradInput& tile, int64_t channels, float* out,
                             int64_t point_step) {
    const bool inside = tile.row_begin == 0 && tile.row_end == kWinogradWindow &&
                        tile.column_begin == 0 && tile.column_end == kWinogradWindow;
    T fault = V::Zero();
    int64_t c = 0;
    if (inside)
      for (; c + kLanes <= channels; c += kLanes)
        fault = SpreadTile<true>(tile, c, kLanes, out, point_step, fault);
    for (; c < channels; c += kLanes)
      fault = SpreadTile<false>(tile, c,
                                channels - c < kLanes ? static_cast<int>(channels - c) : kLanes,
                                out, point_step, fault);
    return IsFinite(fault);
  }

  // Transforms one vector of channels. kWhole: all pixels are stored, and the vector is full.
  template <int kTile, Activation kActivation, bool kWhole>
  static HEDDLE_SIMD_INLINE void GatherTile(const float* m, int64_t point_step, int64_t c, int n,
                                            const float* bias, const Epilogue& epilogue,
                                            const WinogradOutput& tile) {
    T half[kTile * kWinogradWindow], o[kTile * kTile];
#pragma GCC unroll 6
    for (int j = 0; j < kWinogradWindow; ++j) {
      T column[kWinogradWindow];
#pragma GCC unroll 6
      for (int i = 0; i < kWinogradWindow; ++i)
        column[i] = V::Load(m + (i * kWinogradWindow + j) * point_step + c);
      Gather<kTile>(column, 1, half + j, kWinogradWindow);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kTile; ++i) Gather<kTile>(half + i * kWinogradWindow, 1, o + i * kTile, 1);
    Finish<kTile, kTile, kActivation, kWhole>(o, c, n, bias, epilogue, tile);
  }

  // The same for a window of one row.
  template <int kTile, Activation kActivation, bool kWhole>
  static HEDDLE_SIMD_INLINE void GatherRow(const float* m, int64_t point_step, int64_t c, int n,
                                           const float* bias, const Epilogue& epilogue,
                                           const WinogradOutput& tile) {
    T points[kWinogradWindow], o[kTile];
#pragma GCC unroll 6
    for (int j = 0; j < kWinogradWindow; ++j) points[j] = V::Load(m + j * point_step + c);
    Gather<kTile>(points, 1, o, 1);
    Finish<1, kTile, kActivation, kWhole>(o, c, n, bias, epilogue, tile);
  }

  // Applies the epilogue to sums of one vector of channels, and stores them.
  template <int kRows, int kColumns, Activation kActivation, bool kWhole>
  static HEDDLE_SIMD_INLINE void Finish(const T* o, int64_t c, int n, const float* bias,
                                        const Epilogue& epilogue, const WinogradOutput& tile) {
    const T add = bias == nullptr ? V::Zero() : V::LoadSome(bias + c, n);
    const T scale = V::Set(epilogue.scale), shift = V::Set(epilogue.shift);
    const bool linear = epilogue.scale != 1.f || epilogue.shift != 0.f;
    const int rows = kWhole ? kRows : tile.rows, columns = kWhole ? kColumns : tile.columns;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        T x = V::Add(o[i * kColumns + j], add);
        if (tile.residual != nullptr)
          x = V::Add(x, V::LoadSome(tile.residual + i * tile.residual_row_step +
                                        j * tile.residual_pixel_step + c,
                                    n));
        x = ActivateSum<V, kActivation>(x, epilogue);
        if (linear) x = V::Fma(scale, x, shift);
        float* to = tile.data + i * tile.row_step + j * tile.pixel_step + c;
        if constexpr (kWhole)
          V::Store(to, x);
        else
          V::StoreSome(to, x, n);
      }
  }

  template <int kTile, Activation kActivation>
  static void TransformOutput(const float* m, int64_t point_step, int64_t channels,
                              const float* bias, const Epilogue& epilogue,
                              const WinogradOutput& tile) {
    int64_t c = 0;
    if (tile.rows == kTile && tile.columns == kTile)
      for (; c + kLanes <= channels; c += kLanes)
        GatherTile<kTile, kActivation, true>(m, point_step, c, kLanes, bias, epilogue, tile);
    for (; c < channels; c += kLanes)
      GatherTile<kTile, kActivation, false>(
          m, point_step, c, channels - c < kLanes ? static_cast<int>(channels - c) : kLanes, bias,
          epilogue, tile);
  }

  template <int kTile, Activation kActivation>
  static void TransformRowOutput(const float* m, int64_t point_step, int64_t channels,
                                 const float* bias, const Epilogue& epilogue,
                                 const WinogradOutput& tile) {
    int64_t c = 0;
    if (tile.columns == kTile)
      for (; c + kLanes <= channels; c += kLanes)
        GatherRow<kTile, kActivation, true>(m, point_step, c, kLanes, bias, epilogue, tile);
    for (; c < channels; c += kLanes)
      GatherRow<kTile, kActivation, false>(
          m, point_step, c, channels - c < kLanes ? static_cast<int>(channels - c) : kLanes, bias,
          epilogue, tile);
  }
};

}  // namespace
}  // namespace heddle::simd

// Zero points, scales and rounding, for operators on quantised tensors.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/interrupts.h"
#include "kernels/base/ceil_div.h"
#include "kernels/operands/operands.h"
#include "kernels/simd/integers/byte_steps.h"

namespace heddle {

// to[i] = the integer from[i] minus the zero point of its part: `parts` of them, one after another,
// or one for all. An absent zero point is 0.
Status Centered(const Tensor& from, const Tensor* zero, int64_t parts, const char* slot,
                int32_t* to);
// The only element of a scale (float32), and of a zero point of 8 or 16 bits.
Result<float> OneScale(const Tensor& t, const char* slot);
Result<int32_t> OneZero(const Tensor& t, const char* slot);

// The integer of type T nearest to x, ties to even; 0 for NaN.
template <typename T>
T RoundTo(float x, int32_t zero) {
  constexpr float kLeast = static_cast<float>(std::numeric_limits<T>::min());
  constexpr float kMost = static_cast<float>(std::numeric_limits<T>::max());
  const float y = std::nearbyint(x) + static_cast<float>(zero);
  const float most = y < kMost ? y : kMost;  // of NaN, too: the last line tells
  const auto whole = static_cast<int32_t>(most > kLeast ? most : kLeast);
  return static_cast<T>(x == x ? whole : 0);
}

// Loops over bytes take their operands by value: a byte may lie anywhere, so that compilers would
// read again after each store what is reached through a reference.

// to[i] = RoundTo(from[i] / scale).
template <typename T>
void RoundRow(const float* __restrict from, int64_t n, float scale, int32_t zero,
              T* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = RoundTo<T>(from[i] / scale, zero);
}
// to[i] = (from[i] - zero) * scale.
template <typename T>
void ScaleRow(const T* __restrict from, int64_t n, float scale, int32_t zero,
              float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i] - zero) * scale;
}
// to[c] = sums[c] * scale_of(c), rounded, plus the zero point.
template <typename T, typename ScaleOf>
void RequantizeRow(const int32_t* __restrict sums, int64_t n, ScaleOf scale_of, int32_t zero,
                   T* __restrict to) {
  for (int64_t c = 0; c < n; ++c)
    to[c] = RoundTo<T>(static_cast<float>(sums[c]) * scale_of(c), zero);
}

// The scale and the zero point of 255 steps over the range of n numbers, widened to contain 0.
template <typename T>
struct RangeSteps {
  T scale = 1, zero = 0;

  RangeSteps(const T* x, int64_t n) : RangeSteps(RangeOf(x, n)) {}
  // The same by several threads.
  static RangeSteps Of(const KernelContext& ctx, const T* x, int64_t n) {
    constexpr int64_t kParts = 32, kLeast = 1 << 14;
    const int64_t parts = std::clamp<int64_t>(n / kLeast, 1, kParts), each = CeilDiv(n, parts);
    std::array<Range, kParts> ranges{};
    ctx.ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        ranges[static_cast<size_t>(i)] =
            RangeOf(x + i * each, std::max<int64_t>(0, std::min(each, n - i * each)));
    });
    Range all;
    for (int64_t i = 0; i < parts; ++i) {
      const Range& part = ranges[static_cast<size_t>(i)];
      all.least = std::min(all.least, part.least);
      all.most = std::max(all.most, part.most);
    }
    return RangeSteps(all);
  }
  // The step of x, 0 to 255; 0 for NaN.
  T StepOf(T x) const { return Clamped(std::nearbyint(x / scale) + zero); }
  // to[i] = the step of x[i].
  void Round(const KernelContext& ctx, const T* x, int64_t n, uint8_t* to) const {
    ctx.ParallelFor(n, 1 << 14, [&](int64_t begin, int64_t end) {
      for (const auto some : Stretches(Stretches::Range{begin, end})) {
        const int64_t at = some.begin, count = some.end - at;
        if constexpr (std::is_same_v<T, float>)
          simd::BestByteSteps().round(x + at, count, {scale, static_cast<int32_t>(zero), false},
                                      to + at);
        else
          RoundSteps(x + at, count, scale, zero, to + at);
      }
    });
  }

 private:
  struct Range {
    T least = 0, most = 0;
  };
  static Range RangeOf(const T* x, int64_t n) {
    constexpr int64_t kLanes = 16;  // of which compilers make vectors
    T low[kLanes] = {}, high[kLanes] = {};
    for (const auto some : Stretches(n)) {
      int64_t i = some.begin;
      for (; i + kLanes <= some.end; i += kLanes)
        for (int64_t k = 0; k < kLanes; ++k) {
          low[k] = x[i + k] < low[k] ? x[i + k] : low[k];
          high[k] = x[i + k] > high[k] ? x[i + k] : high[k];
        }
      for (; i < some.end; ++i) {
        low[0] = std::min(low[0], x[i]);
        high[0] = std::max(high[0], x[i]);
      }
    }
    return {*std::min_element(low, low + kLanes), *std::max_element(high, high + kLanes)};
  }
  explicit RangeSteps(const Range& range) {
    if (range.most != range.least) scale = (range.most - range.least) / T(255);
    zero = Clamped(-range.least / scale);
  }
  static void RoundSteps(const T* __restrict x, int64_t n, T scale, T zero,
                         uint8_t* __restrict to) {
    for (int64_t i = 0; i < n; ++i) {
      const T y = std::nearbyint(x[i] / scale) + zero;
      const T most = y < T(255) ? y : T(255);
      const auto whole = static_cast<int32_t>(most > T(0) ? most : T(0));
      to[i] = static_cast<uint8_t>(y == y ? whole : 0);
    }
  }
  static T Clamped(T x) {
    return std::isnan(x) ? T(0) : std::nearbyint(std::clamp(x, T(0), T(255)));
  }
};

// out[r][c] = sums[r][c] * scale_of(r)(c), rounded, plus the zero point. What scale_of returns is
// copied. `out` is uint8 or int8.
template <typename ScaleOf>
Status Requantize(const KernelContext& ctx, const int32_t* sums, int64_t rows, int64_t columns,
                  int32_t zero, const ScaleOf& scale_of, Tensor* out) {
  const bool known = VisitDType<uint8_t, int8_t>(out->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const to = out->mutable_data<T>();
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, columns));
    ctx.ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
      for (const int64_t r : Watched(begin, end))
        RequantizeRow<T>(sums + r * columns, columns, scale_of(r), zero, to + r * columns);
    });
  });
  return known ? Status::Ok()
               : Unimplemented("no result of ", Name(out->dtype()), ", expected uint8 or int8");
}

}  // namespace heddle

// Zero points, scales and rounding, for operators on quantised tensors.
#pragma once

#include <cmath>
#include <limits>

#include "core/interrupts.h"
#include "kernels/operands/operands.h"

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
  if (std::isnan(x)) return T(0);
  constexpr float kLeast = static_cast<float>(std::numeric_limits<T>::min());
  constexpr float kMost = static_cast<float>(std::numeric_limits<T>::max());
  return static_cast<T>(std::clamp(std::nearbyint(x) + static_cast<float>(zero), kLeast, kMost));
}

// The scale and the zero point of 255 steps over the range of n numbers, widened to contain 0.
template <typename T>
struct RangeSteps {
  T scale = 1, zero = 0;

  RangeSteps(const T* x, int64_t n) {
    T least = 0, most = 0;
    for (const auto some : Stretches(n))
      for (int64_t i = some.begin; i < some.end; ++i) {
        least = std::min(least, x[i]);
        most = std::max(most, x[i]);
      }
    if (most != least) scale = (most - least) / T(255);
    zero = Clamped(-least / scale);
  }
  // The step of x, 0 to 255; 0 for NaN.
  T StepOf(T x) const { return Clamped(std::nearbyint(x / scale) + zero); }

 private:
  static T Clamped(T x) {
    return std::isnan(x) ? T(0) : std::nearbyint(std::clamp(x, T(0), T(255)));
  }
};

// out[i] = sums[i] * scale_of(i), rounded, plus the zero point. `out` is uint8 or int8.
template <typename ScaleOf>
Status Requantize(const int32_t* sums, int64_t n, int32_t zero, const ScaleOf& scale_of,
                  Tensor* out) {
  const bool known = VisitDType<uint8_t, int8_t>(out->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out->mutable_data<T>();
    for (const auto some : Stretches(n))
      for (int64_t i = some.begin; i < some.end; ++i)
        to[i] = RoundTo<T>(static_cast<float>(sums[i]) * scale_of(i), zero);
  });
  return known ? Status::Ok()
               : Unimplemented("no result of ", Name(out->dtype()), ", expected uint8 or int8");
}

}  // namespace heddle

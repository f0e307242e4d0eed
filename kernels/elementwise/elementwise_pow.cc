#include <cmath>

#include "kernels/base/convert.h"
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/tile_loop.h"

namespace heddle {
namespace {

struct PowFn {
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return ConvertTo<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    else
      return b == T(2) ? a * a : std::pow(a, b);
  }
};

// Squares, mostly: x ** 2 is this operator with a constant.
template <typename T>
void PowOfOne(const TileStep& step, std::byte* const* at, int64_t n) {
  if (*reinterpret_cast<const T*>(at[step.in[1]]) != T(2))
    return BinaryStep<PowFn>::Repeat<T, 1>(step, at, n);
  const T* const x = reinterpret_cast<const T*>(at[step.in[0]]);
  T* const y = reinterpret_cast<T*>(at[step.out]);
  n &= -TileStep::kGroup;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
}

struct PowGradX {  // dout * y * x^(y-1)
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    return static_cast<T>(dout * y * PowFn::Apply<T>(x, static_cast<T>(y - T(1))));
  }
};

struct PowGradY {  // dout * log(x) * x^y
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    if constexpr (std::is_integral_v<T>) {
      const double a = static_cast<double>(x);
      return static_cast<T>(static_cast<double>(dout) * std::log(a) *
                            std::pow(a, static_cast<double>(y)));
    } else {
      return dout * std::log(x) * std::pow(x, y);
    }
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_pow) {
  DefineElementwise<PowFn, float, double, int32_t, int64_t, float16, bfloat16>(op,
                                                                               "x to the power y");
}

HEDDLE_OP(elementwise_pow_grad) {
  op.Doc("gradient of x to the power y");
  DefineElementwiseGrad<PowGradX, PowGradY, float, double, int32_t, int64_t, float16, bfloat16>(
      op, kUsesX | kUsesY);
}

HEDDLE_TILE(elementwise_pow) {
  TileOp tile = BinaryTile<PowFn>();
  tile.f32_repeat[1] = &PowOfOne<float>;
  tile.f64_repeat[1] = &PowOfOne<double>;
  return tile;
}

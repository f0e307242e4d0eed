#include <cmath>

#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/convert.h"
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

HEDDLE_EXAMPLES(elementwise_pow, R"(
example float32 4
in X float32 [4] 4 6 8 2
in Y float32 [4] 4.02 2.02 6.01 8
out Out float32 [4] 263.19714 37.313457 267652.34 256

example float64 3x4
in X float64 [3, 4] 1.382 1.079 1.306 1.837 1.23 1.154 1.685 1.761 1.533 1.913 1.609 1.458
in Y float64 [] 1.07
out Out float64 [3, 4] 1.413655561362434 1.0847582100905235 1.3306357865535985 1.9168882586541112
  1.2479536891941756 1.1656286554079207 1.7476799286204368 1.8321562603768402 1.5795380989818564
  2.001866066470372 1.6634699779129314 1.496995692388739

example float64 4
in X float64 [4] 3.97 1.99 7.93 5.95
in Y float64 [4] 3.98 2 5.97 7.95
out Out float64 [4] 241.6496758536432 3.9601 233701.19240685648 1436844.8560909252

example int64 4
in X int64 [4] 1 1 0 1
in Y int64 [4] 0 1 1 1
out Out int64 [4] 1 1 0 1

example int32 4
in X int32 [4] 6 6 5 7
in Y int32 [4] 3 3 4 8
out Out int32 [4] 216 216 625 5764801

example bfloat16 4
in X bfloat16 [4] 4 6 8 2
in Y bfloat16 [4] 4.03 2.02 6 8
out Out bfloat16 [4] 266 37 2.62e+05 256

example int32, more than fits
dtypes none: what fits depends on the dtype
in X int32 [4] 3 -3 2 0
in Y int32 [4] 20 25 31 -1
out Out int32 [4] -2147483648*4
)")

HEDDLE_EXAMPLES(elementwise_pow_grad, R"(
example float64 3
in Out@GRAD float64 [3] 0.2 0.4 -0.4
in X float64 [3] 2.36 1.6 2.78
in Y float64 [3] 2.165 2.315 2.061
out X@GRAD float64 [3] 1.1774172108727694 1.718022170177336 -2.439324128276733
out Y@GRAD float64 [3] 1.102063282137061 0.5580832173532494 -3.3641766258263077

example float64 3x4
in Out@GRAD float64 [3, 4] 0.9 0.2 -0.9 0.8 0.3 0.9 -0.7 0.1 0.8 1 0 0.3
in X float64 [3, 4] 1.468 1.845 1.242 1.694 1.167 1.769 1.543 1.619 1.92 1.393 1.317 1.091
in Y float64 [] 1.51
out X@GRAD float64 [3, 4] 1.6529120474136896 0.4127291013851362 -1.5178241920610702
  1.5805664944819726 0.4901221597611995 1.8178609122393439 -1.3186866501829448 0.19306023929592545
  1.6848085621674231 1.788100878984801 0 0.4735750620206494
out Y@GRAD float64 [] 4.352424330527235

example float64 6
in Out@GRAD float64 [6] -1 0.9 -0.1 0.2 0.7 0.5
in X float64 [6] 1.51 2.39 1.73 2.17 2.61 1.95
in Y float64 [] 2.9
out X@GRAD float64 [6] -6.345329773428829 13.664587285613761 -0.8216476053223345 2.527560081904817
  12.563568206775424 5.157435007466465
out Y@GRAD float64 [] 22.810633535539846

example float32 3
in Out@GRAD float32 [3] 0.2 0.4 -0.4
in X float32 [3] 2.36 1.6 2.78
in Y float32 [3] 2.165 2.315 2.061
out X@GRAD float32 [3] 1.177417 1.7180223 -2.4393246
out Y@GRAD float32 [3] 1.1020631 0.55808324 -3.364177
)")

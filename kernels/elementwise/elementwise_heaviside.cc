#include "kernels/elementwise/binary_grad.h"

namespace heddle {
namespace {

struct HeavisideFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T x, T y) {
    return x == T(0) ? y : static_cast<T>(x > T(0));
  }
};
struct HeavisideGradX {
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T, T, T, T, double) {
    return T(0);
  }
};
struct HeavisideGradY {
  static constexpr unsigned kUses = kUsesX;
  template <typename T>
  static T Apply(T x, T, T, T dout, double) {
    return x == T(0) ? dout : T(0);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_heaviside) {
  DefineElementwise<HeavisideFn, float, double, int32_t, int64_t, float16, bfloat16>(
      op, "0 where x < 0, y where x is 0, 1 where x > 0");
}

HEDDLE_OP(elementwise_heaviside_grad) {
  op.Doc("gradient of elementwise_heaviside");
  DefineElementwiseGrad<HeavisideGradX, HeavisideGradY, float, double, int32_t, int64_t, float16,
                        bfloat16>(op, kUsesX | kUsesY);
}

HEDDLE_EXAMPLES(elementwise_heaviside, R"(
example y broadcast along rows
in X float32 [2, 3] -1.5 0 2 0 -3 1
in Y float32 [2, 1] 0.5 -0.25
out Out float32 [2, 3] 0 0.5 1 -0.25 0 1

example float32
in X float32 [2, 3] -1.5 0 2 0 -3 1
in Y float32 [3] 2 5 -7
out Out float32 [2, 3] 0 5 1 2 0 1

example float64
in X float64 [2, 3] -1.5 0 2 0 -3 1
in Y float64 [3] 2 5 -7
out Out float64 [2, 3] 0 5 1 2 0 1

example int32
in X int32 [2, 3] -1 0 2 0 -3 1
in Y int32 [3] 2 5 -7
out Out int32 [2, 3] 0 5 1 2 0 1

example int64
in X int64 [2, 3] -1 0 2 0 -3 1
in Y int64 [3] 2 5 -7
out Out int64 [2, 3] 0 5 1 2 0 1
)")

HEDDLE_EXAMPLES(elementwise_heaviside_grad, R"(
example y broadcast along rows
gradient none of X: the step at 0 has no slope; Paddle gives 0
in Out@GRAD float64 [2, 3] -0.7 0.5 0.1 -0.5 -0.3 -0.7
in X float64 [2, 3] -1.5 0 2 0 -3 1
in Y float64 [2, 1] 0.5 -0.25
out X@GRAD float64 [2, 3] -0 0 0 -0 -0 -0
out Y@GRAD float64 [2, 1] 0.5 -0.5
)")

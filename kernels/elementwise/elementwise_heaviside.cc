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

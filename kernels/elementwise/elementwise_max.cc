#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/tile_loop.h"

namespace heddle {
namespace {

struct MaxFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return a > b ? a : b;
  }
};

struct MaxGradX {
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    return x > y ? dout : T(0);
  }
};

struct MaxGradY {  // a tie is Y's
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    return x <= y ? dout : T(0);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_max) {
  DefineElementwise<MaxFn, float, double, int32_t, int64_t, float16, bfloat16>(
      op, "the greater of x and y");
}

HEDDLE_OP(elementwise_max_grad) {
  op.Doc("gradient of elementwise_max: all of it goes to the operand that was taken");
  DefineElementwiseGrad<MaxGradX, MaxGradY, float, double, int32_t, int64_t, float16, bfloat16>(
      op, kUsesX | kUsesY);
}

HEDDLE_TILE(elementwise_max) { return BinaryTile<MaxFn>(); }

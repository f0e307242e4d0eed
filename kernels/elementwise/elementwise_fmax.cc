// elementwise_fmax and elementwise_fmin: a NaN gives way to a number.
#include "kernels/base/axis_lines.h"
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/tile_loop.h"

namespace heddle {
namespace {

struct Fmax {
  template <typename T>
  static bool TakesX(T x, T y) {
    return (x >= y) | IsNan(y);
  }
};
struct Fmin {
  template <typename T>
  static bool TakesX(T x, T y) {
    return (x <= y) | IsNan(y);
  }
};

template <typename F>
struct Taken {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T x, T y) {
    return F::TakesX(x, y) ? x : y;
  }
};

// The gradient goes to the operand that was taken.
template <typename F, bool kOfX>
struct TakenGrad {
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    return F::TakesX(x, y) == kOfX ? dout : T(0);
  }
};
template <typename F>
void DefineTakenGrad(OpDef& op, const char* doc) {
  op.Doc(doc);
  DefineElementwiseGrad<TakenGrad<F, true>, TakenGrad<F, false>, float, double, int32_t, int64_t,
                        float16, bfloat16>(op, kUsesX | kUsesY);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_fmax) {
  DefineElementwise<Taken<Fmax>, float, double, int32_t, int64_t, float16, bfloat16>(
      op, "the greater of x and y, NaN only when both are");
}
HEDDLE_OP(elementwise_fmin) {
  DefineElementwise<Taken<Fmin>, float, double, int32_t, int64_t, float16, bfloat16>(
      op, "the smaller of x and y, NaN only when both are");
}
HEDDLE_OP(elementwise_fmax_grad) { DefineTakenGrad<Fmax>(op, "gradient of elementwise_fmax"); }
HEDDLE_OP(elementwise_fmin_grad) { DefineTakenGrad<Fmin>(op, "gradient of elementwise_fmin"); }

HEDDLE_TILE(elementwise_fmax) { return BinaryTile<Taken<Fmax>>(); }
HEDDLE_TILE(elementwise_fmin) { return BinaryTile<Taken<Fmin>>(); }

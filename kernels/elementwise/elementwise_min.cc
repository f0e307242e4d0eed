#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/tile_loop.h"

namespace heddle {
namespace {

struct MinFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return a < b ? a : b;
  }
};

struct MinGradX {
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    return x < y ? dout : T(0);
  }
};

struct MinGradY {  // a tie is Y's
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    return x >= y ? dout : T(0);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_min) {
  DefineElementwise<MinFn, float, double, int32_t, int64_t, float16, bfloat16>(
      op, "the smaller of x and y");
}

HEDDLE_OP(elementwise_min_grad) {
  op.Doc("gradient of elementwise_min: all of it goes to the operand that was taken");
  DefineElementwiseGrad<MinGradX, MinGradY, float, double, int32_t, int64_t, float16, bfloat16>(
      op, kUsesX | kUsesY);
}

HEDDLE_TILE(elementwise_min) { return BinaryTile<MinFn>(); }

HEDDLE_EXAMPLES(elementwise_min, R"(
example bfloat16 4
in X bfloat16 [4] 0.7 0.9 0.7 0.2
in Y bfloat16 [4] 1.6 -0.2 1.2 0.4
out Out bfloat16 [4] 0.7 -0.2 0.7 0.2

example float64 4x3
in X float64 [4, 3] 0.79 0.927 0.171 0.446 0.583 0.652 0.377 0.859 0.239 0.308 0.721 0.515
in Y float64 [] 0.432
out Out float64 [4, 3] 0.432 0.432 0.171 0.432 0.432 0.432 0.377 0.432 0.239 0.308 0.432 0.432

example float32 4x3
in X float32 [4, 3] 0.903 0.077 0.527 0.828 0.753 0.227 0.377 0.452 0.678 0.302 0.152 0.602
in Y float32 [3] 0.355 0.234 0.447
out Out float32 [4, 3] 0.355 0.077 0.447 0.355 0.234 0.227 0.355 0.234 0.447 0.302 0.152 0.447

example float64 4
in X float64 [4] 0.6 0.405 0.209 0.795
in Y float64 [4] -0.2 1.39 0.33 0.86
out Out float64 [4] -0.2 0.405 0.209 0.795
)")

HEDDLE_EXAMPLES(elementwise_min_grad, R"(
example float64 4
in Out@GRAD float64 [4] -0.8 -0.3 0.7 -0.8
in X float64 [4] 0.22 0.606 0.799 0.413
in Y float64 [4] 0.81 1.38 -0.33 0.24
out X@GRAD float64 [4] -0.8 -0.3 0 -0
out Y@GRAD float64 [4] -0 -0 0.7 -0.8

example bfloat16 4
in Out@GRAD bfloat16 [4] 0.25*4
in X bfloat16 [4] 0.3 0.5 0.1 0.1
in Y bfloat16 [4] -0.4 0.8 0.4 -0.9
out Y@GRAD bfloat16 [4] 0.25 0 0 0.25

example float64 4x3
in Out@GRAD float64 [4, 3] 0.9 0.2 -0.9 0.8 0.3 0.9 -0.7 0.1 0.8 1 0 0.3
in X float64 [4, 3] 0.792 0.93 0.169 0.446 0.584 0.653 0.377 0.861 0.238 0.308 0.722 0.515
in Y float64 [] 0.971
out X@GRAD float64 [4, 3] 0.9 0.2 -0.9 0.8 0.3 0.9 -0.7 0.1 0.8 1 0 0.3
out Y@GRAD float64 [] 0
)")

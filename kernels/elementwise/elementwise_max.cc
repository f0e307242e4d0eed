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

HEDDLE_EXAMPLES(elementwise_max, R"(
example float32 2x1x4, axis 1
attr axis INT 1
in X float32 [2, 1, 4] 0.19 0.94 -1.32 -0.19 -0.94 0.56 1.32 -0.56
in Y float32 [1, 4] 0.46 0.15 1.08 0.77
out Out float32 [2, 1, 4] 0.46 0.94 1.08 0.77 0.46 0.56 1.32 0.77

example float64 4
in X float64 [4] 0.405 0.209 0.795 0.6
in Y float64 [4] 0.33 -0.2 0.86 1.39
out Out float64 [4] 0.405 0.209 0.86 1.39

example float32 3x2x2
in X float32 [3, 2, 2] 1.45 -1.45 0.13 1.19 0.92 -0.92 -0.4 -0.13 0.66 -0.66 -1.19 0.4
in Y float32 [1] 0
out Out float32 [3, 2, 2] 1.45 0 0.13 1.19 0.92 0 0 0 0.66 0 0 0.4

example int64 3
in X int64 [3] 0 -9223372036854775808 -9223372036854775808
in Y int64 [3] 4 1 3
out Out int64 [3] 4 1 3

example int32 4
in X int32 [4] 1 1 0 0
in Y int32 [4] 1 1 0 1
out Out int32 [4] 1 1 0 1

example bfloat16 4
in X bfloat16 [4] 0.404 0.209 0.797 0.6
in Y bfloat16 [4] 0.33 -0.2 0.86 1.39
out Out bfloat16 [4] 0.404 0.209 0.86 1.39
)")

HEDDLE_EXAMPLES(elementwise_max_grad, R"(
example float64 4
in Out@GRAD float64 [4] -0.8 -0.3 0.7 -0.8
in X float64 [4] 0.201 0.597 0.399 0.795
in Y float64 [4] 0.65 1.18 0.11 -0.42
out X@GRAD float64 [4] -0 -0 0.7 -0.8

example float64 4x3
in Out@GRAD float64 [4, 3] 0.9 0.2 -0.9 0.8 0.3 0.9 -0.7 0.1 0.8 1 0 0.3
in X float64 [] 0.313
in Y float64 [4, 3] 0.583 0.446 0.514 0.309 0.788 0.857 0.24 0.925 0.72 0.377 0.172 0.651
out X@GRAD float64 [] 0.10000000000000009

example float64 2
in Out@GRAD float64 [2] 0.5 0.1
in X float64 [2] 0 0
in Y float64 [] 1
out X@GRAD float64 [2] 0 0
out Y@GRAD float64 [] 0.6

example float32 4
in Out@GRAD float32 [4] -0.8 -0.3 0.7 -0.8
in X float32 [4] 0.201 0.597 0.399 0.795
in Y float32 [4] 0.65 1.18 0.11 -0.42
out X@GRAD float32 [4] -0 -0 0.7 -0.8
)")

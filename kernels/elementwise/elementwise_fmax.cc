// elementwise_fmax and elementwise_fmin: a NaN gives way to a number.
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/tile_loop.h"
#include "kernels/reduce/axis_lines.h"

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

HEDDLE_EXAMPLES(elementwise_fmax, R"(
example float32 4
in X float32 [4] 0.22 1.11 0.67 -0.22
in Y float32 [4] 0.58 -1.02 -0.49 0.04
out Out float32 [4] 0.58 1.11 0.67 0.04

example float32 1x3x4
in X float32 [1, 3, 4] -1.19 0.4 0.92 -0.13 -1.45 1.45 1.19 0.66 -0.66 -0.4 -0.92 0.13
in Y float32 [] 1.14
out Out float32 [1, 3, 4] 1.14*5 1.45 1.19 1.14*5

example int64 3
in X int64 [3] 2 -9223372036854775808 -9223372036854775808
in Y int64 [3] 4 1 3
out Out int64 [3] 4 1 3

example float64 2
in X float64 [2] -0.39 0.195
in Y float64 [2] 0.02 -0.07
out Out float64 [2] 0.02 0.195

example int32 4
in X int32 [4] 1 1 0 0
in Y int32 [4] 0 0 -1 0
out Out int32 [4] 1 1 0 0
)")

HEDDLE_EXAMPLES(elementwise_fmin, R"(
example int64 3
in X int64 [3] 0 -9223372036854775808 -9223372036854775808
in Y int64 [3] 4 1 3
out Out int64 [3] 0 -9223372036854775808 -9223372036854775808

example float32 4x3
in X float32 [4, 3] 0.527 0.678 0.302 0.377 0.903 0.077 0.152 0.452 0.753 0.602 0.227 0.828
in Y float32 [3] 0.775 0.452 0.578
out Out float32 [4, 3] 0.527 0.452 0.302 0.377 0.452 0.077 0.152 0.452 0.578 0.602 0.227 0.578

example float64 4x3
in X float64 [4, 3] 0.314 0.725 0.451 0.383 0.588 0.519 0.177 0.656 0.793 0.862 0.93 0.246
in Y float64 [4, 3] 1.7 1.1 0.51 -0.29 1.5 -0.49 0.71 1.3 0.11 0.31 0.91 -0.09
out Out float64 [4, 3] 0.314 0.725 0.451 -0.29 0.588 -0.49 0.177 0.656 0.11 0.31 0.91 -0.09

example float32 3x4x3
in X float32 [3, 4, 3] 0.69 -1.12 -0.48 -1.34 1.02 0.91 -0.8 -0.27 -0.69 -0.37 1.87 1.44 -1.76 0.27
  0.05 1.34 0.48 -0.16 -1.55 0.59 -1.87 -0.59 0.8 -0.91 1.76 1.55 -1.23 -1.66 -0.05 0.16 1.12 1.66
  0.37 -1.02 -1.44 1.23
in Y float32 [1, 1, 1] -1.1
out Out float32 [3, 4, 3] -1.1 -1.12 -1.1 -1.34 -1.1*8 -1.76 -1.1*5 -1.55 -1.1 -1.87 -1.1*5 -1.23
  -1.66 -1.1*6 -1.44 -1.1
)")

HEDDLE_EXAMPLES(elementwise_fmax_grad, R"(
example float64 4
in Out@GRAD float64 [4] -0.8 -0.3 0.7 -0.8
in X float64 [4] -0.22 1.11 0.67 0.22
in Y float64 [4] -1.02 0.58 0.04 -0.49
out X@GRAD float64 [4] -0.8 -0.3 0.7 -0.8
out Y@GRAD float64 [4] -0 -0 0 -0

example float64 1x3x4
in Out@GRAD float64 [1, 3, 4] 0.9 0.2 -0.9 0.8 0.3 0.9 -0.7 0.1 0.8 1 0 0.3
in X float64 [1, 3, 4] -0.92 0.66 -0.4 -0.66 0.13 -0.13 -1.45 0.4 0.92 1.19 1.45 -1.19
in Y float64 [] 1.14
out X@GRAD float64 [1, 3, 4] 0 0 -0 0 0 0 -0 0 0 1 0 0
out Y@GRAD float64 [] 2.7

example float64 2x1
in Out@GRAD float64 [2, 1] 0.5 0.1
in X float64 [2, 1] 0 0
in Y float64 [1] 1
out X@GRAD float64 [2, 1] 0 0
out Y@GRAD float64 [1] 0.6

example float32 4
in Out@GRAD float32 [4] -0.8 -0.3 0.7 -0.8
in X float32 [4] -0.22 1.11 0.67 0.22
in Y float32 [4] -1.02 0.58 0.04 -0.49
out X@GRAD float32 [4] -0.8 -0.3 0.7 -0.8
out Y@GRAD float32 [4] -0 -0 0 -0
)")

HEDDLE_EXAMPLES(elementwise_fmin_grad, R"(
example float64 3
in Out@GRAD float64 [3] 0.2 0.4 -0.4
in X float64 [3] 0.46 -0.15 0.8
in Y float64 [3] -0.05 1.06 -0.82
out X@GRAD float64 [3] 0 0.4 -0
out Y@GRAD float64 [3] 0.2 0 -0.4

example float64 4x3
in Out@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
in X float64 [4, 3] 0.308 0.723 0.447 0.378 0.585 0.516 0.17 0.654 0.792 0.861 0.93 0.239
in Y float64 [4, 3] 1.72 1.08 0.45 -0.39 1.51 -0.6 0.66 1.3 0.03 0.24 0.87 -0.18
out X@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0 0.9 0 0.8 -0.8 -0 -0 0 -0
out Y@GRAD float64 [4, 3] 0 -0 0 -0.8 0 0 0 -0 -0.8 -1 0.6 -1

example float64 2x3x4
in Out@GRAD float64 [2, 3, 4] 0.8 0.1 0.3 0.7 -0.6 -0.7 0.5 -0.1 -0.2 0.6 0.6 -0.7 -0.8 -0.3 0.2 0.8
  0.2 -0.2 0.9 0.7 0.5 0.8 -0.8 -0.9
in X float64 [2, 3, 4] -0.07 -0.37 -1.7 1.26 -0.22 0.22 0.66 1.7 -0.81 -1.26 0.07 -0.96 -1.55 0.81
  -0.52 -1.11 0.52 -1.4 1.11 0.37 1.55 1.4 -0.66 0.96
in Y float64 [1] 0.308
out X@GRAD float64 [2, 3, 4] 0.8 0.1 0.3 0 -0.6 -0.7 0 -0 -0.2 0.6 0.6 -0.7 -0.8 -0 0.2 0.8 0 -0.2
  0*4 -0.8 -0
out Y@GRAD float64 [1] 2.9999999999999996

example float32 3
in Out@GRAD float32 [3] 0.2 0.4 -0.4
in X float32 [3] 0.46 -0.15 0.8
in Y float32 [3] -0.05 1.06 -0.82
out X@GRAD float32 [3] 0 0.4 -0
out Y@GRAD float32 [3] 0.2 0 -0.4
)")

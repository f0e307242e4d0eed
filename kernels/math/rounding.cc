// floor, ceil, round, trunc, and sign: constant between their steps, so the gradients are zero.
#include <cmath>

#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

struct StepOp : UnaryOp {
  static constexpr GradReads kReads = kReadsNothing;
  template <typename T>
  T Grad(T) const {
    return T(0);
  }
};

struct Floor : StepOp {
  template <typename T>
  T Forward(T x) const {
    return std::floor(x);
  }
};
struct Ceil : StepOp {
  template <typename T>
  T Forward(T x) const {
    return std::ceil(x);
  }
};
struct Trunc : StepOp {
  template <typename T>
  T Forward(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return std::trunc(x);
  }
};
struct Round : StepOp {  // halves away from zero
  template <typename T>
  T Forward(T x) const {
    const T whole = std::trunc(x);
    return whole + std::copysign(std::fabs(x - whole) >= T(0.5) ? T(1) : T(0), x);
  }
};
struct Sign : StepOp {
  template <typename T>
  T Forward(T x) const {
    return x != x ? x : T((x > T(0)) - (x < T(0)));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(floor) { DefineUnary<Floor>(op, "Greatest integer not above x."); }
HEDDLE_OP(floor_grad) { DefineUnaryGrad<Floor>(op); }
HEDDLE_OP(ceil) { DefineUnary<Ceil>(op, "Least integer not below x."); }
HEDDLE_OP(ceil_grad) { DefineUnaryGrad<Ceil>(op); }
HEDDLE_OP(round) { DefineUnary<Round>(op, "Nearest integer, halves away from zero."); }
HEDDLE_OP(round_grad) { DefineUnaryGrad<Round>(op); }
HEDDLE_OP(trunc) { DefineUnary<Trunc, int32_t, int64_t>(op, "x without its fraction."); }
HEDDLE_OP(trunc_grad) { DefineUnaryGrad<Trunc, int32_t, int64_t>(op); }
HEDDLE_OP(sign) {
  DefineUnary<Sign, uint8_t, int8_t, int16_t, int32_t, int64_t>(op, "-1, 0 or 1.");
}

HEDDLE_TILE(floor) { return UnaryTile<Floor>(); }
HEDDLE_TILE(ceil) { return UnaryTile<Ceil>(); }
HEDDLE_TILE(round) { return UnaryTile<Round>(); }

HEDDLE_EXAMPLES(floor, R"(
example float32 5
in X float32 [5] 1.98 -0.19 1.44 0.36 0.9
out Out float32 [5] 1 -1 1 0 0

example float32 4x3
in X float32 [4, 3] 0.36 1.89 -1.93 -1.16 4.19 -4.22 -3.46 -0.4 2.66 1.13 -2.69 3.42
out Out float32 [4, 3] 0 1 -2 -2 4 -5 -4 -1 2 1 -3 3

example float64 4x3
in X float64 [4, 3] 0.6780719051126377 0.18903382439001687 0.2016338611696504 0.6870606883398924
  1.3334237337251917 -2.1202942337177118 -2.1202942337177118 1.3334237337251917 1.0426443374084937
  -0.5563933485243852 -0.5353317329965558 1.0496307677246004
out Out float64 [4, 3] 0*4 1 -3 -3 1 1 -1 -1 1

example float64 scalar
in X float64 [] 0.295
out Out float64 [] 0
)")

HEDDLE_EXAMPLES(floor_grad, R"(
example float64 5
in Out@GRAD float64 [5] 0.5 0.2 0.9 -0.7 0.6
out X@GRAD float64 [5] 0 0 0 -0 0

example float64 4x3
in Out@GRAD float64 [4, 3] -0.8 0.2 -0.7 -0.5 -0.3 0.7 0.3 0.1 -0.9 0.5 -0.2 0.6
out X@GRAD float64 [4, 3] -0 0 -0 -0 -0 0 0 0 -0 0 -0 0

example float64 2x4x3x2
in Out@GRAD float64 [2, 4, 3, 2] 0 -0.1 0 -0.7 0.6 -0.4 0.6 0.6 -1 -0.5 0.4 0.6 0.6 -0 0.1 0 -0.4
  -0.6 -0.3 -0.5 -0.6 -0.2 0 -1 0.9 0.7 0.6 0.5 0.9 1 -0.8 0.1 0.5 -0.4 0.4 -0.6 0.7 -0.1 0.3 -0.4
  0.4 -0.2 -0.6 -0.7 -0.1 0.8 0.6 -0.4
out X@GRAD float64 [2, 4, 3, 2] 0 -0 0 -0 0 -0 0 0 -0 -0 0 0 0 -0 0 0 -0*6 0 -0 0*6 -0 0 0 -0 0 -0 0
  -0 0 -0 0 -0*4 0 0 -0

example float32 5
in Out@GRAD float32 [5] 0.5 0.2 0.9 -0.7 0.6
out X@GRAD float32 [5] 0 0 0 -0 0
)")

HEDDLE_EXAMPLES(ceil, R"(
example float32 4x3
in X float32 [4, 3] 0.4 1.93 -1.89 -1.13 4.23 -4.19 -3.42 -0.36 2.7 1.17 -2.66 3.46
out Out float32 [4, 3] 1 2 -1 -1 5 -4 -3 -0 3 2 -2 4

example float64 4x3
in X float64 [4, 3] -0.23 -0.84 -0.38 0.69 -0.53 -0.69 0.38 0.54 0.08 0.84 0.23 -0.08
out Out float64 [4, 3] -0 -0 -0 1 -0 -0 1*5 -0

example float32 3
in X float32 [3] -0.95 -3.24 0.31
out Out float32 [3] -0 -3 1
)")

HEDDLE_EXAMPLES(ceil_grad, R"(
example float64 2
in Out@GRAD float64 [2] -0.5 -0.1
out X@GRAD float64 [2] -0 -0

example float64 4x3
in Out@GRAD float64 [4, 3] -0.8 0.2 -0.7 -0.5 -0.3 0.7 0.3 0.1 -0.9 0.5 -0.2 0.6
out X@GRAD float64 [4, 3] -0 0 -0 -0 -0 0 0 0 -0 0 -0 0

example float32 4x3
in Out@GRAD float32 [4, 3] -0.8 0.2 -0.7 -0.5 -0.3 0.7 0.3 0.1 -0.9 0.5 -0.2 0.6
out X@GRAD float32 [4, 3] -0 0 -0 -0 -0 0 0 0 -0 0 -0 0
)")

HEDDLE_EXAMPLES(round, R"(
example float64 4x3
in X float64 [4, 3] 0.08 0.38 -0.38 -0.23 0.84 -0.84 -0.69 -0.08 0.54 0.23 -0.53 0.69
out Out float64 [4, 3] 0 0 -0 -0 1 -1 -1 -0 1 0 -1 1

example float32 scalar
in X float32 [] 1.37
out Out float32 [] 1

example float32 0x4x7
in X float32 [0, 4, 7]
out Out float32 [0, 4, 7]
)")

HEDDLE_EXAMPLES(round_grad, R"(
example float64 scalar
in Out@GRAD float64 [] 0.7
out X@GRAD float64 [] 0

example float64 3x4x2
in Out@GRAD float64 [3, 4, 2] -0.8 0.9 -0 -0.5 0.1 -0.4 0.7 -0.9 -0.8 0.5 -0.9 0.6 -1 0.2 0.6 0.8 1
  -0 -0.3 0.7 -0.2 0.3 -1 0.6
out X@GRAD float64 [3, 4, 2] -0 0 -0 -0 0 -0 0 -0 -0 0 -0 0 -0 0*4 -0 -0 0 -0 0 -0 0

example float32 3x4x2
in Out@GRAD float32 [3, 4, 2] -0.8 0.9 -0 -0.5 0.1 -0.4 0.7 -0.9 -0.8 0.5 -0.9 0.6 -1 0.2 0.6 0.8 1
  -0 -0.3 0.7 -0.2 0.3 -1 0.6
out X@GRAD float32 [3, 4, 2] -0 0 -0 -0 0 -0 0 -0 -0 0 -0 0 -0 0*4 -0 -0 0 -0 0 -0 0
)")

HEDDLE_EXAMPLES(trunc_grad, R"(
example float64 2
in Out@GRAD float64 [2] -0.5 -0.1
out X@GRAD float64 [2] 0 0

example float64 4x4
in Out@GRAD float64 [4, 4] -0.8 0.9 0.5 -0.3 0.4 0.6 0.3 -0.2 0.4 -0.5 -0.5 -1 -0.8 -0.4 0.3 -0.4
out X@GRAD float64 [4, 4] 0*16

example float32 4x4
in Out@GRAD float32 [4, 4] -0.8 0.9 0.5 -0.3 0.4 0.6 0.3 -0.2 0.4 -0.5 -0.5 -1 -0.8 -0.4 0.3 -0.4
out X@GRAD float32 [4, 4] 0*16
)")

HEDDLE_EXAMPLES(sign, R"(
example float32 1x4
in X float32 [1, 4] -0.32 -0.1 0.36 0.13
out Out float32 [1, 4] -1 -1 1 1

example float64 2x2
in X float64 [2, 2] 4.7620000000000005 1.777 2.762 1.777
out Out float64 [2, 2] 1*4

example float32 3
in X float32 [3] 0.891 0.926 0.763
out Out float32 [3] 1 1 1

example float32 3x4x3
in X float32 [3, 4, 3] 1.56 -1.23 -0.05 -1.55 1.03 1.78 -0.69 0.38 -0.37 1.46 0.06 -0.16 0.27 -1.34
  -0.59 -1.66 0.49 0.17 1.89 0.7 -0.8 -0.26 0.92 -1.45 -0.91 -1.02 -0.48 0.81 1.67 1.24 -1.77 1.13
  1.35 -1.88 -1.12 0.6
out Out float32 [3, 4, 3] 1 -1 -1 -1 1 1 -1 1 -1 1 1 -1 1 -1 -1 -1 1*4 -1 -1 1 -1*4 1 1 1 -1 1 1 -1
  -1 1

example int32 1x4
in X int32 [1, 4] 0*4
out Out int32 [1, 4] 0*4

example int64 1x4
in X int64 [1, 4] 0*4
out Out int64 [1, 4] 0*4
)")

HEDDLE_EXAMPLES(trunc, R"(
example int32 4x4
in X int32 [4, 4] 0*16
out Out int32 [4, 4] 0*16

example float64 4x4
in X float64 [4, 4] 0.181 0.766 0.298 0.239 0.064 0.415 0.707 0.649 0.59 0.356 0.532 0.473 0.824
  0.883 0.941 0.122
out Out float64 [4, 4] 0*16

example float32 2
in X float32 [2] -2.76 -1.19
out Out float32 [2] -2 -1
)")

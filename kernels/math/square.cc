#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

struct Square : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return x * x;
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * T(2) * x;
  }
};

struct SquareGradGrad : UnaryOp {
  static constexpr Key kIns[] = {"X", "grad_out", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD", "grad_out@GRAD"};
  template <typename T>
  std::array<T, 2> operator()(T x, T dy, T ddx) const {
    return {T(2) * ddx * dy, T(2) * ddx * x};
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(square) { DefineUnary<Square, int32_t, int64_t>(op, "x * x"); }
HEDDLE_OP(square_grad) { DefineUnaryGrad<Square, int32_t, int64_t>(op); }
HEDDLE_OP(square_grad_grad) { DefineMap<SquareGradGrad, int32_t, int64_t>(op); }

HEDDLE_TILE(square) { return UnaryTile<Square>(); }
HEDDLE_TILE(square_grad) { return UnaryGradTile<Square>(); }

HEDDLE_EXAMPLES(square_grad, R"(
example float64 2x3
in Out@GRAD float64 [2, 3] -0.6 0.6 0.7 -0.3 -0.5 0.6
in X float64 [2, 3] -0.10800000000000001 -0.4808 0.004399999999999973 -0.10800000000000001 -0.4808
  0.004399999999999973
out X@GRAD float64 [2, 3] 0.12960000000000002 -0.57696 0.006159999999999962 0.06480000000000001
  0.4808 0.005279999999999968

example float64 scalar
in Out@GRAD float64 [] -0.2
in X float64 [] 0.683
out X@GRAD float64 [] -0.27320000000000005

example float64 2x3x4
in Out@GRAD float64 [2, 3, 4] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
in X float64 [2, 3, 4] 1.3 1.07 0.83 -1.31 -0.12 1.54 0.59 -1.55 -1.07 -2.26 0.12 -2.73 -2.02 -0.83
  -1.78 -2.5 1.78 2.49 2.02 -0.6 2.73 0.35 -0.36 2.25
out X@GRAD float64 [2, 3, 4] -2.08 0.642 -0.332 -0.524 -0.096 1.2320000000000002 1.062
  -0.9299999999999999 -0 3.6159999999999997 -0.048 2.184 2.828 1.66 0.7120000000000001 0 -3.56
  0.49800000000000005 -3.232 0.24 -2.184 0.35 -0.144 -0.9

example float32 2x3
in Out@GRAD float32 [2, 3] -0.6 0.6 0.7 -0.3 -0.5 0.6
in X float32 [2, 3] -0.108 -0.4808 0.0044 -0.108 -0.4808 0.0044
out X@GRAD float32 [2, 3] 0.1296 -0.57696 0.00616 0.0648 0.4808 0.00528
)")

HEDDLE_EXAMPLES(square_grad_grad, R"(
example float64 scalar
in X float64 [] 0.683
in grad_out float64 [] 0.466
in grad_x@GRAD float64 [] -0.6
out X@GRAD float64 [] -0.5592
out grad_out@GRAD float64 [] -0.8196

example float64 4x3
in X float64 [4, 3] 0.585 0.722 0.379 0.447 0.928 0.172 0.241 0.516 0.791 0.654 0.31 0.86
in grad_out float64 [4, 3] 0.692 0.616 0.54 0.313 0.465 0.843 0.919 0.086 0.389 0.162 0.767 0.238
in grad_x@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out X@GRAD float64 [4, 3] 0.1384 -0.616 0.21600000000000003 -0.5008 0.8370000000000001 0
  1.4704000000000002 -0.1376 -0.6224000000000001 -0.324 0.9204 -0.476
out grad_out@GRAD float64 [4, 3] 0.11699999999999999 -0.722 0.1516 -0.7152000000000001 1.6704 0
  0.3856 -0.8256000000000001 -1.2656 -1.308 0.372 -1.72

example float32 4x3
in X float32 [4, 3] 0.585 0.722 0.379 0.447 0.928 0.172 0.241 0.516 0.791 0.654 0.31 0.86
in grad_out float32 [4, 3] 0.692 0.616 0.54 0.313 0.465 0.843 0.919 0.086 0.389 0.162 0.767 0.238
in grad_x@GRAD float32 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out X@GRAD float32 [4, 3] 0.1384 -0.616 0.216 -0.5008 0.837 0 1.4704001 -0.1376 -0.6224 -0.324
  0.9204001 -0.476
out grad_out@GRAD float32 [4, 3] 0.117 -0.722 0.1516 -0.7152 1.6703999 0 0.3856 -0.82559997
  -1.2656001 -1.308 0.372 -1.72

example int32 scalar
in X int32 [] 4
in grad_out int32 [] 3
in grad_x@GRAD int32 [] -4
out X@GRAD int32 [] -24
out grad_out@GRAD int32 [] -32
)")

HEDDLE_EXAMPLES(square, R"(
example float32
in X float32 [2, 3] 0.77 -0.61 0.04 -0.65 0.8 -0.24
out Out float32 [2, 3] 0.5929 0.37210003 0.0016 0.42249995 0.64000005 0.0576

example float64
in X float64 [2, 3] 0.16 0.9 0.33 0.04 0.02 0.19
out Out float64 [2, 3] 0.0256 0.81 0.10890000000000001 0.0016 0.0004 0.0361

example int32
in X int32 [3] 5 -2 5
out Out int32 [3] 25 4 25

example int64
in X int64 [3] -2 -5 -1
out Out int64 [3] 4 25 1
)")

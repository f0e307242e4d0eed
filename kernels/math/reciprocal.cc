#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Reciprocal : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  template <typename T>
  T Forward(T x) const {
    return T(1) / x;
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return -dy * fast::Conj(y * y);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(reciprocal) { DefineUnary<Reciprocal, complex64, complex128>(op, "1 / x"); }
HEDDLE_OP(reciprocal_grad) { DefineUnaryGrad<Reciprocal, complex64, complex128>(op); }

HEDDLE_TILE(reciprocal) { return UnaryTile<Reciprocal>(); }
HEDDLE_TILE(reciprocal_grad) { return UnaryGradTile<Reciprocal>(); }

HEDDLE_EXAMPLES(reciprocal, R"(
example float64 4x2
in X float64 [4, 2] 1.95 1.14 1.68 2.22 0.6 1.41 0.87 2.49
out Out float64 [4, 2] 0.5128205128205129 0.8771929824561404 0.5952380952380952 0.4504504504504504
  1.6666666666666667 0.7092198581560284 1.1494252873563218 0.4016064257028112

example float32 4x3
in X float32 [4, 3] -1.16 -4.23 -1.93 3.44 -2.69 -3.46 1.91 2.67 0.37 4.21 1.14 -0.39
out Out float32 [4, 3] -0.862069 -0.23640662 -0.5181347 0.29069766 -0.3717472 -0.28901735 0.5235602
  0.37453184 2.7027028 0.2375297 0.877193 -2.5641026

example float64 scalar
in X float64 [] 1.65
out Out float64 [] 0.6060606060606061

example float32 0x6x1x6
in X float32 [0, 6, 1, 6]
out Out float32 [0, 6, 1, 6]
)")

HEDDLE_EXAMPLES(reciprocal_grad, R"(
example float64 4x2
in Out float64 [4, 2] 1.6666666666666667 0.7092198581560284 0.4504504504504504 0.5952380952380952
  1.1494252873563218 0.4016064257028112 0.8771929824561404 0.5128205128205129
in Out@GRAD float64 [4, 2] -0.9 0.4 0.6 0.6 0.9 -0.1 0.7 -0.5
out X@GRAD float64 [4, 2] 2.5 -0.20119712288114283 -0.1217433649866082 -0.21258503401360546
  -1.1890606420927468 0.016128772116578764 -0.5386272699292091 0.1314924391847469

example float64 scalar
in Out float64 [] 0.607
in Out@GRAD float64 [] -0.2
out X@GRAD float64 [] 0.0736898

example float32 4x2
in Out float32 [4, 2] 1.6666666 0.7092199 0.45045045 0.5952381 1.1494253 0.40160644 0.877193
  0.51282054
in Out@GRAD float32 [4, 2] -0.9 0.4 0.6 0.6 0.9 -0.1 0.7 -0.5
out X@GRAD float32 [4, 2] 2.4999998 -0.20119713 -0.12174337 -0.21258503 -1.1890606 0.016128773
  -0.53862727 0.13149245
)")

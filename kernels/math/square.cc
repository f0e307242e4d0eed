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

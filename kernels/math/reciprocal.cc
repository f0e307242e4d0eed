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

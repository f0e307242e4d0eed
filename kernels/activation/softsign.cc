#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Softsign : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return x / (T(1) + T(std::abs(x)));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const auto a = std::abs(x);
    const T d = T(1) + T(a);
    if constexpr (kIsComplex<T>) {  // |x| depends on x and on its conjugate
      if (a == 0) return dy;
      return (dy * T(1 + a / 2) - std::conj(dy) * x * x / (2 * a)) / (d * d);
    } else {
      return dy / (d * d);
    }
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(softsign) { DefineUnary<Softsign, complex64, complex128>(op, "x / (1 + |x|)"); }
HEDDLE_OP(softsign_grad) { DefineUnaryGrad<Softsign, complex64, complex128>(op); }

HEDDLE_TILE(softsign) { return UnaryTile<Softsign>(); }
HEDDLE_TILE(softsign_grad) { return UnaryGradTile<Softsign>(); }

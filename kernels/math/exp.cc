// exp and expm1.
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Exp : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  template <typename T>
  T Forward(T x) const {
    return fast::Exp(x);
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return dy * fast::Conj(y);
  }
};

struct Expm1 : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  template <typename T>
  T Forward(T x) const {
    if constexpr (kIsComplex<T>)
      return std::exp(x) - T(1);
    else
      return std::expm1(x);
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return dy * fast::Conj(y + T(1));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(exp) { DefineFloatUnary<Exp, complex64, complex128>(op, "e to the power x."); }
HEDDLE_OP(exp_grad) { DefineUnaryGrad<Exp, int32_t, int64_t, complex64, complex128>(op); }
HEDDLE_OP(expm1) {
  DefineFloatUnary<Expm1, complex64, complex128>(op, "exp(x) - 1, exact near 0.");
}
HEDDLE_OP(expm1_grad) { DefineUnaryGrad<Expm1, complex64, complex128>(op); }

HEDDLE_TILE(exp) { return UnaryTile<Exp>(); }
HEDDLE_TILE(exp_grad) { return UnaryGradTile<Exp>(); }

// sqrt and rsqrt.
#include <cmath>

#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Sqrt : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  template <typename T>
  T Forward(T x) const {
    return std::sqrt(x);
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return T(0.5) * dy / fast::Conj(y);
  }
};

struct SqrtGradGrad : UnaryOp {
  static constexpr Key kIns[] = {"Out", "grad_x", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"Out@GRAD", "grad_out@GRAD"};
  template <typename T>
  std::array<T, 2> operator()(T y, T dx, T ddx) const {
    return {-dx * ddx / y, T(0.5) * ddx / y};
  }
};

struct Rsqrt : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  template <typename T>
  T Forward(T x) const {
    return T(1) / std::sqrt(x);
  }
  template <typename T>
  T Grad(T y, T dy) const {
    const T c = fast::Conj(y);
    return T(-0.5) * dy * c * c * c;
  }
};

struct RsqrtGradGrad : UnaryOp {
  static constexpr Key kIns[] = {"Out", "grad_x", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"Out@GRAD", "grad_out@GRAD"};
  template <typename T>
  std::array<T, 2> operator()(T y, T dx, T ddx) const {
    return {T(3) / y * dx * ddx, T(-0.5) * y * y * y * ddx};
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sqrt) { DefineUnary<Sqrt, complex64, complex128>(op, "Square root."); }
HEDDLE_OP(sqrt_grad) { DefineUnaryGrad<Sqrt, complex64, complex128>(op); }
HEDDLE_OP(sqrt_grad_grad) { DefineMap<SqrtGradGrad>(op); }
HEDDLE_OP(rsqrt) { DefineUnary<Rsqrt>(op, "1 / sqrt(x)"); }
HEDDLE_OP(rsqrt_grad) { DefineUnaryGrad<Rsqrt, complex64, complex128>(op); }
HEDDLE_OP(rsqrt_grad_grad) { DefineMap<RsqrtGradGrad>(op); }

HEDDLE_TILE(sqrt) { return UnaryTile<Sqrt>(); }
HEDDLE_TILE(sqrt_grad) { return UnaryGradTile<Sqrt>(); }
HEDDLE_TILE(rsqrt) { return UnaryTile<Rsqrt>(); }
HEDDLE_TILE(rsqrt_grad) { return UnaryGradTile<Rsqrt>(); }

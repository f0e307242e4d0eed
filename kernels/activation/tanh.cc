#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/gemm/gemm_epilogue.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Tanh : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  static bool Many(const float* x, int64_t n, float* y) {
    ActivateMany(Activation::kTanh, 0, x, n, y);
    return true;
  }
  template <typename T>
  T Forward(T x) const {
    return fast::Tanh(x);
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return dy * fast::Conj(T(1) - y * y);
  }
};

struct TanhGradGrad : UnaryOp {
  static constexpr Key kIns[] = {"Out", "grad_out", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"Out@GRAD", "grad_out@GRAD"};
  template <typename T>
  std::array<T, 2> operator()(T y, T dy, T ddx) const {
    return {T(-2) * y * dy * ddx, (T(1) - y * y) * ddx};
  }
};

// Gradient of TanhGradGrad: `dy_new` and `ddy` are the gradients of its two outputs.
struct TanhTripleGrad : UnaryOp {
  static constexpr Key kIns[] = {"Out", "grad_out_forward", "grad_x_grad_forward",
                                 "grad_out_new@GRAD", "grad_out_grad@GRAD"};
  static constexpr Key kOuts[] = {"Out@GRAD", "grad_out_forward@GRAD", "grad_x_grad_forward@GRAD"};
  template <typename T>
  std::array<T, 3> operator()(T y, T dy, T ddx, T dy_new, T ddy) const {
    return {T(-2) * ddx * (dy * dy_new + y * ddy), T(-2) * y * ddx * dy_new,
            (T(1) - y * y) * ddy - T(2) * y * dy * dy_new};
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tanh) { DefineUnary<Tanh, complex64, complex128>(op, "Hyperbolic tangent."); }
HEDDLE_OP(tanh_grad) { DefineUnaryGrad<Tanh, complex64, complex128>(op); }
HEDDLE_OP(tanh_grad_grad) { DefineMap<TanhGradGrad, complex64, complex128>(op); }
HEDDLE_OP(tanh_triple_grad) { DefineMap<TanhTripleGrad, complex64, complex128>(op); }

HEDDLE_TILE(tanh) { return UnaryTile<Tanh>(); }
HEDDLE_TILE(tanh_grad) { return UnaryGradTile<Tanh>(); }

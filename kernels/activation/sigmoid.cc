#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/gemm/gemm_epilogue.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Sigmoid : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  static bool Many(const float* x, int64_t n, float* y) {
    ActivateMany(Activation::kSigmoid, 0, x, n, y);
    return true;
  }
  template <typename T>
  T Forward(T x) const {
    return fast::Sigmoid(x);
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return dy * fast::Conj(y * (T(1) - y));
  }
};

struct SigmoidGradGrad : UnaryOp {
  static constexpr Key kIns[] = {"Out", "fwd_grad_out", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"Out@GRAD", "fwd_grad_out@GRAD"};
  template <typename T>
  std::array<T, 2> operator()(T y, T dy, T ddx) const {
    return {(T(1) - T(2) * y) * dy * ddx, y * (T(1) - y) * ddx};
  }
};

// Gradient of SigmoidGradGrad; dy_new and ddy_new belong to its outputs Out@GRAD and
// fwd_grad_out@GRAD.
struct SigmoidTripleGrad : UnaryOp {
  static constexpr Key kIns[] = {"Out", "fwd_grad_out", "grad_grad_x", "grad_out@GRAD",
                                 "grad_grad_out@GRAD"};
  static constexpr Key kOuts[] = {"Out@GRAD", "fwd_grad_out@GRAD", "grad_grad_x@GRAD"};
  template <typename T>
  std::array<T, 3> operator()(T y, T dy, T ddx, T dy_new, T ddy_new) const {
    const T slope = T(1) - T(2) * y;
    return {ddy_new * slope * ddx - T(2) * ddx * dy * dy_new, slope * ddx * dy_new,
            slope * dy * dy_new + y * (T(1) - y) * ddy_new};
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sigmoid) { DefineUnary<Sigmoid, complex64, complex128>(op, "1 / (1 + exp(-x))"); }
HEDDLE_OP(sigmoid_grad) { DefineUnaryGrad<Sigmoid, complex64, complex128>(op); }
HEDDLE_OP(sigmoid_grad_grad) { DefineMap<SigmoidGradGrad, complex64, complex128>(op); }
HEDDLE_OP(sigmoid_triple_grad) { DefineMap<SigmoidTripleGrad, complex64, complex128>(op); }

HEDDLE_TILE(sigmoid) { return UnaryTile<Sigmoid>(); }
HEDDLE_TILE(sigmoid_grad) { return UnaryGradTile<Sigmoid>(); }

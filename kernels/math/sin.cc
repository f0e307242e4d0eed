// sin and cos with derivatives up to the third.
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

// f = sin or cos, f1 its derivative; the second is -f, the third -f1.
struct SinOf {
  template <typename T>
  static T F(T x) {
    return static_cast<T>(std::sin(x));
  }
  template <typename T>
  static T F1(T x) {
    return static_cast<T>(std::cos(x));
  }
};
struct CosOf {
  template <typename T>
  static T F(T x) {
    return static_cast<T>(std::cos(x));
  }
  template <typename T>
  static T F1(T x) {
    return static_cast<T>(-std::sin(x));
  }
};

template <typename W>
struct Wave : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return W::F(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * fast::Conj(W::F1(x));
  }
};

template <typename W>
struct WaveDoubleGrad : SlowUnaryOp {
  static constexpr Key kIns[] = {"X", "grad_out", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD", "grad_out@GRAD"};
  template <typename T>
  std::array<T, 2> operator()(T x, T dy, T ddx) const {
    return {-ddx * dy * W::F(x), ddx * W::F1(x)};
  }
};

// Gradient of WaveDoubleGrad: dx_new and ddy belong to its two outputs.
template <typename W>
struct WaveTripleGrad : SlowUnaryOp {
  static constexpr Key kIns[] = {"X", "grad_out_forward", "grad_x_grad_forward", "grad_x@GRAD",
                                 "grad_out_grad@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD", "grad_out_forward@GRAD", "grad_x_grad_forward@GRAD"};
  template <typename T>
  std::array<T, 3> operator()(T x, T dy, T ddx, T dx_new, T ddy) const {
    const T f = W::F(x), f1 = W::F1(x);
    return {-ddx * (dy * f1 * dx_new + f * ddy), -ddx * f * dx_new, f1 * ddy - dy * f * dx_new};
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sin) { DefineUnary<Wave<SinOf>, complex64, complex128>(op, "Sine."); }
HEDDLE_OP(sin_grad) { DefineUnaryGrad<Wave<SinOf>, complex64, complex128>(op); }
HEDDLE_OP(sin_double_grad) {
  DefineMap<WaveDoubleGrad<SinOf>, int32_t, int64_t, complex64, complex128>(op);
}
HEDDLE_OP(sin_triple_grad) {
  DefineMap<WaveTripleGrad<SinOf>, int32_t, int64_t, complex64, complex128>(op);
}
HEDDLE_OP(cos) { DefineUnary<Wave<CosOf>, complex64, complex128>(op, "Cosine."); }
HEDDLE_OP(cos_grad) { DefineUnaryGrad<Wave<CosOf>, complex64, complex128>(op); }
HEDDLE_OP(cos_double_grad) {
  DefineMap<WaveDoubleGrad<CosOf>, int32_t, int64_t, complex64, complex128>(op);
}
HEDDLE_OP(cos_triple_grad) {
  DefineMap<WaveTripleGrad<CosOf>, int32_t, int64_t, complex64, complex128>(op);
}

HEDDLE_TILE(sin) { return UnaryTile<Wave<SinOf>>(); }
HEDDLE_TILE(sin_grad) { return UnaryGradTile<Wave<SinOf>>(); }
HEDDLE_TILE(cos) { return UnaryTile<Wave<CosOf>>(); }
HEDDLE_TILE(cos_grad) { return UnaryGradTile<Wave<CosOf>>(); }

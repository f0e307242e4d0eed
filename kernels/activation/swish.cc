#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/gemm/gemm_epilogue.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Swish : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit Swish(const KernelContext& ctx) : beta(ctx.Float("beta")) {}
  static void Declare(OpDef& op) { op.Attr("beta", 1.0); }
  bool Many(const float* x, int64_t n, float* y) const {
    ActivateMany(Activation::kSwish, static_cast<float>(beta), x, n, y);
    return true;
  }
  template <typename T>
  T Forward(T x) const {
    return x / (T(1) + fast::Exp(T(-beta) * x));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T s = fast::Sigmoid(T(beta) * x);
    return dy * s * (T(1) + T(beta) * x * (T(1) - s));
  }
  double beta;
};

struct Silu : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  bool Many(const float* x, int64_t n, float* y) const {
    ActivateMany(Activation::kSwish, 1, x, n, y);
    return true;
  }
  template <typename T>
  T Forward(T x) const {
    return x / (T(1) + fast::Exp(-x));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T s = fast::Sigmoid(x);
    return dy * fast::Conj(s * (T(1) + x * (T(1) - s)));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(swish) { DefineUnary<Swish>(op, "x * sigmoid(beta * x)"); }
HEDDLE_OP(swish_grad) { DefineUnaryGrad<Swish>(op); }
HEDDLE_OP(silu) { DefineUnary<Silu, complex64, complex128>(op, "x * sigmoid(x)"); }
HEDDLE_OP(silu_grad) {
  DefineUnaryGrad<Silu, complex64, complex128>(op).Input(
      "Out", kOptional | kNoBuffer);  // named by programs, not needed
}

HEDDLE_TILE(swish) { return UnaryTile<Swish>(); }
HEDDLE_TILE(swish_grad) { return UnaryGradTile<Swish>(); }
HEDDLE_TILE(silu) { return UnaryTile<Silu>(); }
HEDDLE_TILE(silu_grad) { return UnaryGradTile<Silu>(); }

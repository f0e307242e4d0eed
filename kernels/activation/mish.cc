#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/gemm/gemm_epilogue.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Mish : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit Mish(const KernelContext& ctx) : threshold(ctx.Float("threshold")) {}
  static void Declare(OpDef& op) { op.Attr("threshold", 20.0); }
  template <typename T>
  T Softplus(T x) const {
    return fast::Select(x > T(threshold), x, fast::Softplus(x));
  }
  bool Many(const float* x, int64_t n, float* y) const {
    if (threshold < 20) return false;
    ActivateMany(Activation::kMish, 0, x, n, y);
    return true;
  }
  // tanh(log(1 + e)) = n / (n + 2), n = e^2 + 2 e, for e = exp(x); and tanh(x) so for n = e^2 - 1,
  // which is asked for beyond the threshold. Both are 1 long before 20.
  template <typename T>
  T Forward(T x) const {
    const T e = fast::Exp(fast::Select(x > T(20), T(20), x));
    const T n = fast::Select(x > T(threshold), e * e - T(1), e * (e + T(2)));
    return x * (n / (n + T(2)));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T t = fast::Tanh(Softplus(x));
    // Beyond the threshold as Paddle has it: the slope of softplus where that is x already.
    const T slope = fast::Select(x > T(threshold), T(1) - fast::Exp(-x), fast::Sigmoid(x));
    return dy * (t + x * (T(1) - t * t) * slope);
  }
  double threshold;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(mish) { DefineUnary<Mish>(op, "x * tanh(softplus(x))"); }
HEDDLE_OP(mish_grad) { DefineUnaryGrad<Mish>(op); }

HEDDLE_TILE(mish) { return UnaryTile<Mish>(); }
HEDDLE_TILE(mish_grad) { return UnaryGradTile<Mish>(); }

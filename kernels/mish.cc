#include "kernels/common/fast_math.h"
#include "kernels/common/tile_loop.h"
#include "kernels/common/unary.h"

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
  template <typename T>
  T Forward(T x) const {
    return x * fast::Tanh(Softplus(x));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T t = fast::Tanh(Softplus(x));
    return dy * (t + x * (T(1) - t * t) * fast::Sigmoid(x));
  }
  double threshold;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(mish) { DefineUnary<Mish>(op, "x * tanh(softplus(x))"); }
HEDDLE_OP(mish_grad) { DefineUnaryGrad<Mish>(op); }

HEDDLE_TILE(mish) { return UnaryTile<Mish>(); }
HEDDLE_TILE(mish_grad) { return UnaryGradTile<Mish>(); }

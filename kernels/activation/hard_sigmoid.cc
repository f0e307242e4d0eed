#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct HardSigmoid : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  explicit HardSigmoid(const KernelContext& ctx)
      : slope(ctx.Float("slope")), offset(ctx.Float("offset")) {}
  static void Declare(OpDef& op) { op.Attr("slope", double{0.2f}).Attr("offset", 0.5); }
  template <typename T>
  T Forward(T x) const {
    return fast::Clamp(x * T(slope) + T(offset), T(0), T(1));
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return fast::Select(y > T(0) && y < T(1), dy * T(slope), T(0));
  }
  double slope, offset;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(hard_sigmoid) { DefineUnary<HardSigmoid>(op, "slope * x + offset, limited to [0, 1]."); }
HEDDLE_OP(hard_sigmoid_grad) { DefineUnaryGrad<HardSigmoid>(op); }

HEDDLE_TILE(hard_sigmoid) { return UnaryTile<HardSigmoid>(); }
HEDDLE_TILE(hard_sigmoid_grad) { return UnaryGradTile<HardSigmoid>(); }

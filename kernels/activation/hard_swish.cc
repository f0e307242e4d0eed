#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct HardSwish : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit HardSwish(const KernelContext& ctx)
      : threshold(ctx.Float("threshold")), scale(ctx.Float("scale")), offset(ctx.Float("offset")) {}
  static void Declare(OpDef& op) {
    op.Attr("threshold", 6.0).Attr("scale", 6.0).Attr("offset", 3.0);
  }
  template <typename T>
  T Forward(T x) const {
    return x * fast::Clamp(x + T(offset), T(0), T(threshold)) / T(scale);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T shifted = x + T(offset);
    const T middle = fast::Conj((T(2) * x + T(offset)) / T(scale));
    const T slope = fast::Select(fast::Less(shifted, T(threshold)), middle, T(1));
    return dy * fast::Select(fast::Less(T(0), shifted), slope, T(0));
  }
  double threshold, scale, offset;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(hard_swish) {
  DefineUnary<HardSwish, complex64, complex128>(op,
                                                "x * min(max(x + offset, 0), threshold) / scale");
}
HEDDLE_OP(hard_swish_grad) { DefineUnaryGrad<HardSwish, complex64, complex128>(op); }

HEDDLE_TILE(hard_swish) { return UnaryTile<HardSwish>(); }
HEDDLE_TILE(hard_swish_grad) { return UnaryGradTile<HardSwish>(); }

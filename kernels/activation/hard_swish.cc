#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

// As in Paddle, the attributes threshold, scale and offset are there and change nothing.
struct HardSwish : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  static void Declare(OpDef& op) {
    op.Attr("threshold", 6.0).Attr("scale", 6.0).Attr("offset", 3.0);
  }
  template <typename T>
  T Forward(T x) const {
    return x * fast::Clamp(x + T(3), T(0), T(6)) / T(6);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T shifted = x + T(3);
    const T middle = fast::Conj((T(2) * x + T(3)) / T(6));
    const T slope = fast::Select(fast::Less(shifted, T(6)), middle, T(1));
    return dy * fast::Select(fast::Less(T(0), shifted), slope, T(0));
  }
};

// The product of the other form overflows for x beyond a sixth of the greatest number.
struct HardSwishDividedFirst : UnaryOp {
  template <typename T>
  T Forward(T x) const {
    return x * (fast::Clamp(x + T(3), T(0), T(6)) / T(6));
  }
};

template <typename T>
struct HardSwishKernel {
  static Status Run(KernelContext& ctx) {
    return ctx.Bool("divide_first") ? RunMap<ForwardMap<HardSwishDividedFirst>, T>(ctx)
                                    : RunMap<ForwardMap<HardSwish>, T>(ctx);
  }
};
template <typename T>
Status HardSwishTile(const KernelContext& attrs, TileStep* step) {
  return attrs.Bool("divide_first") ? MakeMapTile<ForwardMap<HardSwishDividedFirst>, T>(attrs, step)
                                    : MakeMapTile<ForwardMap<HardSwish>, T>(attrs, step);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(hard_swish) {
  DefineUnary<HardSwish, complex64, complex128>(
      op, "x * min(max(x + 3, 0), 6) / 6; with divide_first x * (min(max(x + 3, 0), 6) / 6)");
  op.Attr("divide_first", false);
  op.Kernels<HardSwishKernel, float, double, float16, bfloat16>();
}
HEDDLE_OP(hard_swish_grad) { DefineUnaryGrad<HardSwish, complex64, complex128>(op); }

HEDDLE_TILE(hard_swish) { return {1, &HardSwishTile<float>, &HardSwishTile<double>}; }
HEDDLE_TILE(hard_swish_grad) { return UnaryGradTile<HardSwish>(); }

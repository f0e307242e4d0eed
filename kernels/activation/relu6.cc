#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Relu6 : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  explicit Relu6(const KernelContext& ctx) : threshold(ctx.Float("threshold")) {}
  static void Declare(OpDef& op) { op.Attr("threshold", 6.0); }
  template <typename T>
  T Forward(T x) const {
    return fast::Clamp(x, T(0), T(threshold));
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return fast::Select(y > T(0) && y < T(threshold), dy, T(0));
  }
  double threshold;
};

struct MaskOfRelu6 {
  static constexpr Key kAttr = "keep_nan";
};
// Times 1 or 0: a gradient that is NaN or infinite is NaN outside.
struct Relu6GradKeepingNan : Relu6 {
  static constexpr Key kIns[] = {"Out", "Out@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD"};
  using Relu6::Relu6;
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * ((y > T(0)) & (y < T(threshold)) ? T(1) : T(0));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(relu6) {
  DefineUnary<Relu6, uint8_t, int8_t, int16_t, int32_t, int64_t>(
      op, "min(max(x, 0), threshold); NaN stays");
}
HEDDLE_OP(relu6_grad) { DefineGradOr<MaskOfRelu6, Relu6GradKeepingNan, Relu6>(op); }

HEDDLE_TILE(relu6) { return UnaryTile<Relu6>(); }
HEDDLE_TILE(relu6_grad) {
  return EitherMap<MaskOfRelu6, Relu6GradKeepingNan, GradMap<Relu6>>::Tile();
}

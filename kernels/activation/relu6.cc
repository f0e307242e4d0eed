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

}  // namespace
}  // namespace heddle

HEDDLE_OP(relu6) {
  DefineUnary<Relu6, uint8_t, int8_t, int16_t, int32_t, int64_t>(
      op, "min(max(x, 0), threshold); NaN stays");
}
HEDDLE_OP(relu6_grad) { DefineUnaryGrad<Relu6>(op); }

HEDDLE_TILE(relu6) { return UnaryTile<Relu6>(); }
HEDDLE_TILE(relu6_grad) { return UnaryGradTile<Relu6>(); }

HEDDLE_EXAMPLES(relu6, R"(
example float64 4x3, threshold 6
attr threshold FLOAT 6.0
in X float64 [4, 3] 4.9 6.6 2.4 3.2 9.1 -0.1 0.7 4.1 7.4 5.8 1.6 8.3
out Out float64 [4, 3] 4.9 6 2.4 3.2 6 0 0.7 4.1 6 5.8 1.6 6

example float64 scalar, threshold 6
attr threshold FLOAT 6.0
in X float64 [] 6.12
out Out float64 [] 6

example float32 scalar, threshold 6
attr threshold FLOAT 6.0
in X float32 [] 5.09
out Out float32 [] 5.09

example float32 3x3x4, threshold 6
attr threshold FLOAT 6.0
in X float32 [3, 3, 4] 2.04 6.95 1.01 -1.32 2.56 0.75 1.52 5.92 1.27 -0.29 5.4 1.78 -0.03 3.07 3.85
  4.37 4.11 4.88 3.33 7.21 5.66 0.49 5.14 7.47 -0.8 0.23 4.62 -1.06 6.43 2.82 3.59 6.18 2.3 -1.58
  -0.54 6.69
out Out float32 [3, 3, 4] 2.04 6 1.01 0 2.56 0.75 1.52 5.92 1.27 0 5.4 1.78 0 3.07 3.85 4.37 4.11
  4.88 3.33 6 5.66 0.49 5.14 6 0 0.23 4.62 0 6 2.82 3.59 6 2.3 0 0 6

example int32 1x2x4
# given
in X int32 [1, 2, 4] 1 6 -8 5 1 -7 -1 -3
out Out int32 [1, 2, 4] 1 6 0 5 1 0 0 0

example NaN stays
in X float32 [2, 3] nan -1 7 inf -inf 3
out Out float32 [2, 3] nan 0 6 6 0 3
)")

HEDDLE_EXAMPLES(relu6_grad, R"(
example float64 scalar, threshold 6
attr threshold FLOAT 6.0
in Out float64 [] 5.09
in Out@GRAD float64 [] -0.2
out X@GRAD float64 [] -0.2

example float64 3x3x4, threshold 6
attr threshold FLOAT 6.0
in Out float64 [3, 3, 4] 0 0 0.23 4.62 2.56 0 6 0 5.4 6 1.27 4.37 5.14 3.33 3.59 2.04 4.88 5.66 3.07
  1.52 0 0 2.3 0.49 0 2.82 5.92 6 6 0.75 6 4.11 6 1.78 1.01 3.85
in Out@GRAD float64 [3, 3, 4] 0.6 -0.1 0.3 0.8 0.3 0.8 0.4 0.3 -0.8 -0.9 -0.6 -0.5 -0.7 0.7 -0.4 0.6
  -0.5 -0.1 -0.7 0.8 0.7 0.7 0.4 -0.3 -0.6 -0.3 0.7 0 -0.7 -0.7 1 0.9 -0.9 -0.7 0.6 0.4
out X@GRAD float64 [3, 3, 4] 0 -0 0.3 0.8 0.3 0 0 0 -0.8 -0 -0.6 -0.5 -0.7 0.7 -0.4 0.6 -0.5 -0.1
  -0.7 0.8 0 0 0.4 -0.3 -0 -0.3 0.7 0 -0 -0.7 0 0.9 -0 -0.7 0.6 0.4

example float32 scalar, threshold 6
attr threshold FLOAT 6.0
in Out float32 [] 5.09
in Out@GRAD float32 [] -0.2
out X@GRAD float32 [] -0.2
)")

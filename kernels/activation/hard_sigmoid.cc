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

HEDDLE_EXAMPLES(hard_sigmoid, R"(
example float32 4x3, slope 0.166667
attr slope FLOAT 0.16666667
in X float32 [4, 3] 0.4 1.92 -1.88 -1.12 4.2 -4.17 -3.4 -0.36 2.68 1.16 -2.64 3.44
out Out float32 [4, 3] 0.56666666 0.82 0.18666667 0.31333333 1 0 0 0.44 0.9466667 0.6933333
  0.059999973 1

example float64 4x3, offset 0.4
attr offset FLOAT 0.4
in X float64 [4, 3] 4.2 -4.17 0.4 3.44 2.68 -2.64 -1.12 -0.36 1.92 -1.88 -3.4 1.16
out Out float64 [4, 3] 1 0 0.48000000715255736 1 0.9360000139474869 0 0.17600000262260435
  0.32800000488758085 0.7840000116825103 0.024000000357627893 0 0.6320000094175339

example float64 scalar, slope 0.166667
attr slope FLOAT 0.16666667
in X float64 [] -2.14
out Out float64 [] 0.1433333227038383

example float32 4x2x3
in X float32 [4, 2, 3] 3.79 4.18 -0.15 1.03 3 1.82 -4.49 -0.94 -0.55 3.39 -2.52 -2.12 -3.7 -4.09
  -3.3 4.58 2.61 0.64 -1.33 2.21 -2.91 -1.73 1.42 0.24
out Out float32 [4, 2, 3] 1 1 0.47 0.706 1 0.864 0 0.31199998 0.39 1 0 0.076000005 0 0 0 1 1 0.628
  0.234 0.94200003 0 0.15399998 0.78400004 0.548
)")

HEDDLE_EXAMPLES(hard_sigmoid_grad, R"(
example float64 scalar, slope 0.166667
attr slope FLOAT 0.16666667
in Out float64 [] 0.144
in Out@GRAD float64 [] -0.2
out X@GRAD float64 [] -0.03333333432674408

example float64 4x3, slope 0.166667
attr slope FLOAT 0.16666667
in Out float64 [4, 3] 0.54 0.69 0.31 0.38 0.92 0.08 0.15 0.46 0.77 0.62 0.23 0.85
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out X@GRAD float64 [4, 3] -0.10000000298023223 -0.10000000298023223 -0.11666667014360427
  0.0833333358168602 -0.0833333358168602 0.05000000149011612 0.03333333432674408
  -0.03333333432674408 0.11666667014360427 -0 -0.0833333358168602 0.11666667014360427

example float64 4x2x3
in Out float64 [4, 2, 3] 1 0 0.7060000030696392 0.5480000007152558 0.3899999983608723
  0.4699999995529652 1 0.07599999368190763 1 0 1 0.6280000019073486 1 0.7840000042319297 0 0
  0.31199999719858174 0 0.8640000054240227 0 0.23399999603629112 1 0.9420000065863132
  0.15399999484419824
in Out@GRAD float64 [4, 2, 3] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
out X@GRAD float64 [4, 2, 3] -0 0 -0.04000000059604645 0.04000000059604645 0.0800000011920929
  0.0800000011920929 0 0.06000000089406967 0 -0 -0 -0.0800000011920929 -0 -0.20000000298023224 -0 -0
  -0.20000000298023224 0 -0.1600000023841858 -0 -0.0800000011920929 0 0.04000000059604645
  -0.04000000059604645

example float32 scalar, slope 0.166667
attr slope FLOAT 0.16666667
in Out float32 [] 0.144
in Out@GRAD float32 [] -0.2
out X@GRAD float32 [] -0.033333335
)")

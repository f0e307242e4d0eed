// Activations that cut off small values: softshrink, hard_shrink, tanh_shrink, thresholded_relu.
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Softshrink : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit Softshrink(const KernelContext& ctx) : lambda(ctx.Float("lambda")) {}
  static void Declare(OpDef& op) { op.Attr("lambda", 0.5); }
  template <typename T>
  T Forward(T x) const {
    return x - fast::Clamp(x, T(-lambda), T(lambda));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return fast::Select((x > T(lambda)) | (x < -T(lambda)), dy, T(0));
  }
  double lambda;
};

// Version 0 counted values on both sides of a negative threshold twice.
struct HardShrink : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit HardShrink(const KernelContext& ctx)
      : threshold(ctx.Float("threshold")), both(ctx.Int("op_version") == 0 ? 2 : 1) {}
  static void Declare(OpDef& op) { op.Attr("threshold", 0.5).Attr("op_version", 1); }
  template <typename T>
  T Forward(T x) const {
    const T kept = fast::Select((x <= T(threshold)) & (x >= -T(threshold)), T(0), x);
    return kept * Times(x);  // NaN stays NaN
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return fast::Select((x > T(threshold)) | (x < -T(threshold)), dy * Times(x), T(0));
  }
  template <typename T>
  T Times(T x) const {
    return fast::Select((x > T(threshold)) & (x < -T(threshold)), T(both), T(1));
  }
  double threshold, both;
};

struct TanhShrink : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return x - fast::Tanh(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T t = fast::Tanh(x);
    return dy * t * t;
  }
};

struct ThresholdedRelu : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit ThresholdedRelu(const KernelContext& ctx) : threshold(ctx.Float("threshold")) {}
  static void Declare(OpDef& op) { op.Attr("threshold", 1.0); }
  template <typename T>
  T Forward(T x) const {
    return fast::Select(x <= T(threshold), T(0), x);  // NaN stays NaN
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return fast::Select(x > T(threshold), dy, T(0));
  }
  double threshold;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(softshrink) {
  DefineUnary<Softshrink>(op, "x moved towards 0 by lambda, but not past it.");
}
HEDDLE_OP(softshrink_grad) { DefineUnaryGrad<Softshrink>(op); }
HEDDLE_OP(hard_shrink) { DefineUnary<HardShrink>(op, "x, but 0 within the threshold."); }
HEDDLE_OP(hard_shrink_grad) { DefineUnaryGrad<HardShrink>(op); }
HEDDLE_OP(tanh_shrink) { DefineUnary<TanhShrink>(op, "x - tanh(x)"); }
HEDDLE_OP(tanh_shrink_grad) { DefineUnaryGrad<TanhShrink>(op); }
HEDDLE_OP(thresholded_relu) { DefineUnary<ThresholdedRelu>(op, "x, but 0 up to the threshold."); }
HEDDLE_OP(thresholded_relu_grad) { DefineUnaryGrad<ThresholdedRelu>(op); }

HEDDLE_TILE(softshrink) { return UnaryTile<Softshrink>(); }
HEDDLE_TILE(hard_shrink) { return UnaryTile<HardShrink>(); }
HEDDLE_TILE(tanh_shrink) { return UnaryTile<TanhShrink>(); }
HEDDLE_TILE(thresholded_relu) { return UnaryTile<ThresholdedRelu>(); }

HEDDLE_EXAMPLES(softshrink, R"(
example float64 4x3, lambda 0.8
attr lambda FLOAT 0.8
in X float64 [4, 3] 5.52 7 3.31 4.04 9.21 1.09 1.83 4.78 7.74 6.26 2.57 8.47
out Out float64 [4, 3] 4.719999988079071 6.199999988079071 2.509999988079071 3.239999988079071
  8.409999988079072 0.2899999880790711 1.0299999880790711 3.9799999880790713 6.939999988079071
  5.459999988079071 1.7699999880790709 7.669999988079072

example float32 5
in X float32 [5] 1.52 -0.34 1.06 0.13 0.59
out Out float32 [5] 1.02 0 0.55999994 0 0.089999974

example float64 scalar, lambda 0.8
attr lambda FLOAT 0.8
in X float64 [] 9.16
out Out float64 [] 8.359999988079071
)")

HEDDLE_EXAMPLES(softshrink_grad, R"(
example float64 5
in Out@GRAD float64 [5] -0.8 0.4 0.1 -0.3 -0.2
in X float64 [5] 1.52 -0.34 1.06 0.13 0.59
out X@GRAD float64 [5] -0.8 0 0.1 -0 -0.2

example float64 4x3, lambda 0.8
attr lambda FLOAT 0.8
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] 7 6.26 5.52 3.31 4.78 8.47 9.21 1.09 4.04 1.83 7.74 2.57
out X@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7

example float64 scalar, lambda 0.8
attr lambda FLOAT 0.8
in Out@GRAD float64 [] -0.2
in X float64 [] 9.16
out X@GRAD float64 [] -0.2

example float32 5
in Out@GRAD float32 [5] -0.8 0.4 0.1 -0.3 -0.2
in X float32 [5] 1.52 -0.34 1.06 0.13 0.59
out X@GRAD float32 [5] -0.8 0 0.1 -0 -0.2
)")

HEDDLE_EXAMPLES(hard_shrink, R"(
example float64 4x3, threshold -0.1
attr threshold FLOAT -0.1
in X float64 [4, 3] -5.3 -3.8 3.8 5.4 8.4 0.8 -0.8 -8.4 -6.9 -2.3 2.3 6.9
out Out float64 [4, 3] -5.3 -3.8 3.8 5.4 8.4 0.8 -0.8 -8.4 -6.9 -2.3 2.3 6.9

example float32 4x3
in X float32 [4, 3] 0.08 0.38 -0.38 -0.23 0.84 -0.84 -0.69 -0.08 0.54 0.23 -0.53 0.69
out Out float32 [4, 3] 0 0 -0 -0 0.84 -0.84 -0.69 -0 0.54 0 -0.53 0.69
)")

HEDDLE_EXAMPLES(hard_shrink_grad, R"(
example float64 3x1
in Out@GRAD float64 [3, 1] -0.5 -0.9 0.2
in X float64 [3, 1] 0.5 1.25 -1.13
out X@GRAD float64 [3, 1] -0 -0.9 0.2

example float64 4x3, threshold -0.1
attr threshold FLOAT -0.1
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] 8.4 -8.4 0.8 6.9 5.4 -5.3 -2.3 -0.8 3.8 -3.8 -6.9 2.3
out X@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7

example float32 3x1
in Out@GRAD float32 [3, 1] -0.5 -0.9 0.2
in X float32 [3, 1] 0.5 1.25 -1.13
out X@GRAD float32 [3, 1] -0 -0.9 0.2
)")

HEDDLE_EXAMPLES(tanh_shrink, R"(
example float32 7
in X float32 [7] -2.13 -0.01 2.1 0.69 -1.43 -0.72 1.4
out Out float32 [7] -1.1578515 -3.343448e-7 1.1295478 0.09201801 -0.53833336 -0.1030907 0.5146483

example float64 4x3
in X float64 [4, 3] 15.39 16.91 13.1 13.86 19.21 10.8 11.57 14.62 17.68 16.15 12.33 18.44
out Out float64 [4, 3] 14.390000000000086 15.910000000000004 12.100000000008366 12.860000000001829
  18.21 9.80000000083228 10.570000000178425 13.620000000000399 16.68 15.150000000000018
  11.330000000039023 17.44

example float64 scalar
in X float64 [] 16.5
out Out float64 [] 15.500000000000009

example float32 3x3x4x1
in X float32 [3, 3, 4, 1] -1.37 -1.22 2.36 0.72 -0.92 1.61 2.51 -2.72 -0.63 -0.48 -2.27 1.02 -1.07
  1.17 -0.03 1.32 -0.33 -1.82 -2.12 0.57 1.91 -2.42 0.12 0.27 2.06 -1.52 1.47 1.76 -0.78 0.42 -1.97
  0.87 -1.67 2.21 -2.57 -0.18
out Out float32 [3, 3, 4, 1] -0.49130785 -0.38034576 1.3776727 0.1030907 -0.19410259 0.68684
  1.5231223 -1.7286415 -0.07194775 -0.033756405 -1.2911212 0.2501334 -0.28053874 0.3457278
  -8.996576e-6 0.4532162 -0.011479259 -0.87116164 -1.1484058 0.05464071 0.9529146 -1.4356902
  0.0005727038 0.0063751936 1.0919697 -0.61130244 0.5704225 0.817497 -0.12729323 0.02306959
  -1.0081545 0.16862583 -0.7384484 1.2337823 -1.581647 -0.0019191504
)")

HEDDLE_EXAMPLES(tanh_shrink_grad, R"(
example float64 7
in Out@GRAD float64 [7] -0.4 0.6 -0.3 -0.6 -0.8 0.9 0.7
in X float64 [7] 0.69 -1.43 1.4 -0.72 2.1 -2.13 -0.01
out X@GRAD float64 [7] -0.1430329891682863 0.4770415943034909 -0.23515426229233885
  -0.2283462527857598 -0.7534215690214425 0.8505658193452043 6.999533359776399e-5

example float64 4x3
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] 12.33 16.91 13.86 13.1 15.39 14.62 10.8 16.15 17.68 18.44 19.21 11.57
out X@GRAD float64 [4, 3] -0.5999999999531715 -0.5999999999999951 -0.6999999999974383
  0.499999999991634 -0.4999999999999142 0.29999999999975985 0.19999999966708823 -0.19999999999999252
  0.6999999999999987 -0 -0.5 0.699999999750205

example float64 3x3x4x1
in Out@GRAD float64 [3, 3, 4, 1] 0.6 -0.1 0.3 0.8 0.3 0.8 0.4 0.3 -0.8 -0.9 -0.6 -0.5 -0.7 0.7 -0.4
  0.6 -0.5 -0.1 -0.7 0.8 0.7 0.7 0.4 -0.3 -0.6 -0.3 0.7 0 -0.7 -0.7 1 0.9 -0.9 -0.7 0.6 0.4
in X float64 [3, 3, 4, 1] 0.12 -0.78 -0.33 2.21 1.91 -1.22 0.57 -2.72 -1.07 -2.27 -0.92 0.42 -1.97
  -1.37 1.61 -2.12 1.32 -1.82 -2.57 1.76 2.06 -1.52 0.27 -0.48 -0.18 2.51 -2.42 1.47 -0.63 1.17 0.87
  2.36 1.02 0.72 -1.67 -0.03
out X@GRAD float64 [3, 3, 4, 1] 0.008557727781132797 -0.04260260440077517 0.030436645595623417
  0.7624008555756709 0.27480375067730595 0.564015307755063 0.10623807417132743 0.2948375222618858
  -0.4985992155133828 -0.8623830243426615 -0.31615623413074706 -0.07877688392586875
  -0.647602877998012 0.5404699794809625 -0.3408897756550002 0.5663970305737512 -0.3756571896561638
  -0.09002943536746244 -0.6837889437202201 0.7106495362927946 0.6559578676960977 0.5780120041067307
  0.027799221551098503 -0.05974000790635943 -0.019027677353653166 -0.29217822734559074
  0.6782062597964996 0 -0.21799559270370375 -0.4755972275595225 0.49192567154947325
  0.868470053444973 -0.5334250348011332 -0.2664039615833864 0.5206731246656594
  0.00035978411010836815

example float32 7
in Out@GRAD float32 [7] -0.4 0.6 -0.3 -0.6 -0.8 0.9 0.7
in X float32 [7] 0.69 -1.43 1.4 -0.72 2.1 -2.13 -0.01
out X@GRAD float32 [7] -0.14303298 0.47704163 -0.23515429 -0.22834627 -0.7534217 0.8505657
  6.9995316e-5
)")

HEDDLE_EXAMPLES(thresholded_relu, R"(
example float64 4x3, threshold 15
attr threshold FLOAT 15.0
in X float64 [4, 3] -4.6 -16.8 -7.6 13.8 -10.7 -13.7 7.7 10.7 1.5 16.8 4.6 -1.5
out Out float64 [4, 3] -0 -0 -0 0 -0 -0 0 0 0 16.8 0 -0

example float32 1x5
in X float32 [1, 5] -0.97 0.52 1.27 2.02 -0.22
out Out float32 [1, 5] -0 0 1.27 2.02 -0

example float32 5x1x2
in X float32 [5, 1, 2] 0.37 1.03 1.36 -0.96 -0.3 0.04 -1.62 -0.63 -1.29 0.7
out Out float32 [5, 1, 2] 0 1.03 1.36 -0 -0 0 -0 -0 -0 0

example float64 scalar, threshold 15
attr threshold FLOAT 15.0
in X float64 [] 5.91
out Out float64 [] 0
)")

HEDDLE_EXAMPLES(thresholded_relu_grad, R"(
example float64 1x5
in Out@GRAD float64 [1, 5] -0.8 0.4 0.1 -0.3 -0.2
in X float64 [1, 5] -0.97 1.27 -0.22 2.02 0.52
out X@GRAD float64 [1, 5] -0 0.4 0 -0.3 -0

example float64 scalar, threshold 15
attr threshold FLOAT 15.0
in Out@GRAD float64 [] -0.2
in X float64 [] 5.91
out X@GRAD float64 [] -0

example float64 5x1x2
in Out@GRAD float64 [5, 1, 2] -0.4 0.3 0.2 0.6 -0 0.9 1 0.7 -0.6 -0.7
in X float64 [5, 1, 2] -1.62 -0.63 1.03 -0.3 -1.29 0.37 1.36 -0.96 0.7 0.04
out X@GRAD float64 [5, 1, 2] -0 0 0.2 0 -0 0 1 0 -0 -0

example float32 1x5
in Out@GRAD float32 [1, 5] -0.8 0.4 0.1 -0.3 -0.2
in X float32 [1, 5] -0.97 1.27 -0.22 2.02 0.52
out X@GRAD float32 [1, 5] -0 0.4 0 -0.3 -0
)")

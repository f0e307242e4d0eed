#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

// Version 0 was max(x, alpha x), which is another function where alpha is above 1.
struct LeakyReluAttrs : UnaryOp {
  explicit LeakyReluAttrs(const KernelContext& ctx) : below(ctx.Float("alpha")) {
    if (ctx.Int("op_version") == 0 && below > 1) std::swap(above, below);
  }
  static void Declare(OpDef& op) { op.Attr("alpha", double{0.02f}).Attr("op_version", 1); }
  double above = 1, below;
};

struct LeakyRelu : LeakyReluAttrs {
  static constexpr GradReads kReads = kReadsX;
  using LeakyReluAttrs::LeakyReluAttrs;
  template <typename T>
  T Forward(T x) const {
    return x * fast::Select(x < T(0), T(below), T(above));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * fast::Select(x < T(0), T(below), T(above));
  }
};

struct LeakyReluGradGrad : LeakyReluAttrs {
  static constexpr Key kIns[] = {"X", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"grad_out@GRAD"};
  using LeakyReluAttrs::LeakyReluAttrs;
  template <typename T>
  T operator()(T x, T ddx) const {
    return ddx * fast::Select(x > T(0), T(above), T(below));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(leaky_relu) { DefineUnary<LeakyRelu>(op, "x, times alpha where negative."); }
HEDDLE_OP(leaky_relu_grad) { DefineUnaryGrad<LeakyRelu>(op); }
HEDDLE_OP(leaky_relu_grad_grad) {
  DefineMap<LeakyReluGradGrad>(op).Inplace("grad_x@GRAD", "grad_out@GRAD");
}

HEDDLE_TILE(leaky_relu) { return UnaryTile<LeakyRelu>(); }
HEDDLE_TILE(leaky_relu_grad) { return UnaryGradTile<LeakyRelu>(); }

HEDDLE_EXAMPLES(leaky_relu, R"(
example float32 4x3, alpha 0.01
attr alpha FLOAT 0.01
in X float32 [4, 3] -0.53 0.54 0.38 -0.08 -0.69 -0.23 0.08 0.84 -0.84 0.69 0.23 -0.38
out Out float32 [4, 3] -0.0052999994 0.54 0.38 -0.0008 -0.0069 -0.0023 0.08 0.84 -0.0084 0.69 0.23
  -0.0037999998

example float64 4x3, alpha 2
attr alpha FLOAT 2.0
in X float64 [4, 3] 0.08 0.38 -0.38 -0.23 0.84 -0.84 -0.69 -0.08 0.54 0.23 -0.53 0.69
out Out float64 [4, 3] 0.08 0.38 -0.76 -0.46 0.84 -1.68 -1.38 -0.16 0.54 0.23 -1.06 0.69

example float32 4, alpha 0.0706603
attr alpha FLOAT 0.070660256
in X float32 [4] -1.53 -0.61 -1.07 -0.15
out Out float32 [4] -0.10811019 -0.043102756 -0.07560648 -0.010599039

example float32 3x4x4, alpha 0.204828
attr alpha FLOAT 0.20482752
in X float32 [3, 4, 4] 1.43 -0.85 -0.2 -1.51 -0.04 -0.36 1.75 -0.77 0.45 -0.61 -1.26 -0.12 -0.45
  -1.02 1.1 -1.18 0.12 -1.1 -1.83 0.37 -0.94 -1.75 1.92 -1.42 1.59 0.04 1.67 1.02 0.29 1.18 1.27
  1.84 0.78 1.35 0.61 0.21 -1.67 0.94 -1.34 0.86 1.51 -0.53 -0.28 0.53 -0.69 -1.91 -1.59 0.69
out Out float32 [3, 4, 4] 1.43 -0.1741034 -0.040965505 -0.30928954 -0.008193101 -0.07373791 1.75
  -0.15771718 0.45 -0.12494479 -0.25808266 -0.024579301 -0.09217238 -0.20892407 1.1 -0.24169646 0.12
  -0.22531028 -0.37483436 0.37 -0.19253786 -0.35844815 1.92 -0.29085508 1.59 0.04 1.67 1.02 0.29
  1.18 1.27 1.84 0.78 1.35 0.61 0.21 -0.34206194 0.94 -0.27446887 0.86 1.51 -0.10855858 -0.057351705
  0.53 -0.14133099 -0.39122054 -0.32567576 0.69
)")

HEDDLE_EXAMPLES(leaky_relu_grad, R"(
example float64 4, alpha 0.0706603
attr alpha FLOAT 0.070660256
in Out@GRAD float64 [4] 0.9 0.7 0.2 0.8
in X float64 [4] -1.53 -0.61 -0.15 -1.07
out X@GRAD float64 [4] 0.06359423026442527 0.04946217909455299 0.014132051169872284
  0.05652820467948914

example float64 4x3, alpha 2
attr alpha FLOAT 2.0
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] -0.08 0.23 -0.38 0.08 -0.84 -0.69 -0.53 0.84 0.69 -0.23 0.54 0.38
out X@GRAD float64 [4, 3] -1.2 -0.6 -1.4 0.5 -1 0.6 0.4 -0.2 0.7 -0 -0.5 0.7

example float32 4, alpha 0.0706603
attr alpha FLOAT 0.070660256
in Out@GRAD float32 [4] 0.9 0.7 0.2 0.8
in X float32 [4] -1.53 -0.61 -0.15 -1.07
out X@GRAD float32 [4] 0.06359423 0.049462177 0.014132052 0.056528207
)")

HEDDLE_EXAMPLES(leaky_relu_grad_grad, R"(
example float64 4x3, alpha -0.01
attr alpha FLOAT -0.01
in X float64 [4, 3] -0.53 0.54 0.38 -0.08 -0.69 -0.23 0.08 0.84 -0.84 0.69 0.23 -0.38
in grad_x@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out grad_out@GRAD float64 [4, 3] 0.005999999865889549 -0.6 -0.7 -0.004999999888241291
  0.004999999888241291 -0.0029999999329447745 0.2 -0.2 -0.006999999843537807 -0 -0.5
  -0.006999999843537807

example float32 4x3, alpha -0.01
attr alpha FLOAT -0.01
in X float32 [4, 3] -0.53 0.54 0.38 -0.08 -0.69 -0.23 0.08 0.84 -0.84 0.69 0.23 -0.38
in grad_x@GRAD float32 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out grad_out@GRAD float32 [4, 3] 0.006 -0.6 -0.7 -0.005 0.005 -0.003 0.2 -0.2 -0.0069999998 -0 -0.5
  -0.0069999998
)")

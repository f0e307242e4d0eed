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

HEDDLE_EXAMPLES(mish, R"(
example float64 4x3
in X float64 [4, 3] -0.23 -0.84 -0.38 0.69 -0.53 -0.69 0.38 0.54 0.08 0.84 0.23 -0.08
out Out float64 [4, 3] -0.12100432255673235 -0.2891433072102483 -0.18184540567697247
  0.5514782257940678 -0.2291769153773375 -0.2660017860357441 0.27239464308983735 0.4110708432924108
  0.05003793014343616 0.6999800462777845 0.15460591023545583 -0.045945683445792515

example float64 scalar
in X float64 [] 0.295
out Out float64 [] 0.20409428664815202

example float32 scalar
in X float32 [] 0.826
out Out float32 [] 0.68583053

example float32 0x7
in X float32 [0, 7]
out Out float32 [0, 7]
)")

HEDDLE_EXAMPLES(mish_grad, R"(
example float64 scalar
in Out@GRAD float64 [] -0.2
in X float64 [] 0.826
out X@GRAD float64 [] -0.2017475690980975

example float64 4x3
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] -0.53 0.38 -0.23 -0.38 0.08 -0.08 -0.84 0.23 0.54 0.69 0.84 -0.69
out X@GRAD float64 [4, 3] -0.16365173344865572 -0.4959240361072024 -0.316721182457332
  0.17977682246978272 -0.325399471843192 0.16457595196082395 0.02418805550174279 -0.1484908115236014
  0.6332979894197546 -0 -0.5063027728232699 0.1324966100983345

example float32 scalar
in Out@GRAD float32 [] -0.2
in X float32 [] 0.826
out X@GRAD float32 [] -0.20174757
)")

#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Logit : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit Logit(const KernelContext& ctx) : eps(ctx.Float("eps")) {}
  static void Declare(OpDef& op) { op.Attr("eps", double{1e-6f}); }
  template <typename T>
  T Forward(T x) const {
    const T c = eps > 0 ? fast::Clamp(x, T(eps), T(1) - T(eps)) : x;
    return fast::Log(c / (T(1) - c));  // NaN outside [0, 1]
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T e = T(eps);
    const T outside = eps > 0 ? T(0) : std::numeric_limits<T>::quiet_NaN();
    return fast::Select((x < e) | (x > T(1) - e), outside, dy / (x * (T(1) - x)));
  }
  double eps;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(logit) { DefineUnary<Logit>(op, "log(x / (1 - x)), x kept eps away from 0 and 1."); }
HEDDLE_OP(logit_grad) { DefineUnaryGrad<Logit>(op); }

HEDDLE_EXAMPLES(logit, R"(
example float32 4, eps 0
attr eps FLOAT 0.0
in X float32 [4] 0.201 0.594 0.791 0.397
out Out float32 [4] -1.3800561 0.38052607 1.3309637 -0.41798085

example float64 2x4
in X float64 [2, 4] 0.33 -0.33 0.11 0.55 -0.77 -0.11 -0.55 0.77
out Out float64 [2, 4] -0.7081850579244856 -13.815509560488534 -2.090741096933769
  0.20067069546215144 -13.815509560488534 -13.815509560488534 -13.815509560488534 1.2083112059245342

example float64 4
in X float64 [4] 0.2 -0.6 0.59 -0.2
out Out float64 [4] -1.3862943611198906 -13.815509560488534 0.3639653772014114 -13.815509560488534

example float32 1x3
in X float32 [1, 3] 0.276 0.563 0.702
out Out float32 [1, 3] -0.9643905 0.2533465 0.8568401
)")

HEDDLE_EXAMPLES(logit_grad, R"(
example float64 4
in Out@GRAD float64 [4] 0.9 0.7 0.2 0.8
in X float64 [4] -0.6 0.59 0.2 -0.2
out X@GRAD float64 [4] 0 2.8937577511368335 1.25 0

example float64 2x4
in Out@GRAD float64 [2, 4] -0.9 0.4 0.6 0.6 0.9 -0.1 0.7 -0.5
in X float64 [2, 4] -0.33 0.11 -0.77 -0.11 0.33 0.55 0.77 -0.55
out X@GRAD float64 [2, 4] 0 4.085801838610827 0 0 4.07055630936228 -0.4040404040404041
  3.9525691699604746 0

example float64 4x3x2
in Out@GRAD float64 [4, 3, 2] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
in X float64 [4, 3, 2] 0.487 0.418 0.108 0.797 0.452 0.556 0.659 0.9 0.314 0.211 0.521 0.28 0.142
  0.693 0.383 0.246 0.625 0.177 0.762 0.59 0.866 0.831 0.349 0.728
out X@GRAD float64 [4, 3, 2] -3.2021646633123995 1.2331672668080698 -2.076067098488623
  1.236162703735066 1.6148827595116595 1.6203253613325554 4.005001802250812 3.3333333333333335 0
  -4.805410892665142 -0.8014136937557853 -1.9841269841269842 -5.7454282806395485 -4.700330433229455
  -0.8463423200782021 -0 -4.266666666666667 0.6864784342799872 -4.411213304219326
  -0.8267879288962382 -3.446968391299851 3.5602645988649866 0.8802855646371684 -1.0100193923723335

example float32 4
in Out@GRAD float32 [4] 0.9 0.7 0.2 0.8
in X float32 [4] -0.6 0.59 0.2 -0.2
out X@GRAD float32 [4] 0 2.8937573 1.2499999 0
)")

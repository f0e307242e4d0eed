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

#include "kernels/common/fast_math.h"
#include "kernels/common/unary.h"

namespace heddle {
namespace {

struct LeakyReluAttrs : UnaryOp {
  explicit LeakyReluAttrs(const KernelContext& ctx) : alpha(ctx.Float("alpha")) {}
  static void Declare(OpDef& op) { op.Attr("alpha", double{0.02f}); }
  double alpha;
};

struct LeakyRelu : LeakyReluAttrs {
  static constexpr GradReads kReads = kReadsX;
  using LeakyReluAttrs::LeakyReluAttrs;
  template <typename T>
  T Forward(T x) const {
    return fast::Select(x < T(0), x * T(alpha), x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return fast::Select(x < T(0), dy * T(alpha), dy);
  }
};

struct LeakyReluGradGrad : LeakyReluAttrs {
  static constexpr Key kIns[] = {"X", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"grad_out@GRAD"};
  using LeakyReluAttrs::LeakyReluAttrs;
  template <typename T>
  T operator()(T x, T ddx) const {
    return fast::Select(x > T(0), ddx, ddx * T(alpha));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(leaky_relu) { DefineUnary<LeakyRelu>(op, "x, times alpha where negative."); }
HEDDLE_OP(leaky_relu_grad) { DefineUnaryGrad<LeakyRelu>(op); }
HEDDLE_OP(leaky_relu_grad_grad) {
  DefineMap<LeakyReluGradGrad>(op).Inplace("grad_x@GRAD", "grad_out@GRAD");
}

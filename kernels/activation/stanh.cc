#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Stanh : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit Stanh(const KernelContext& ctx) : a(ctx.Float("scale_a")), b(ctx.Float("scale_b")) {}
  static void Declare(OpDef& op) {
    op.Attr("scale_a", double{0.67f}).Attr("scale_b", double{1.7159f});
  }
  template <typename T>
  T Forward(T x) const {
    return T(b) * fast::Tanh(T(a) * x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T t = fast::Tanh(T(a) * x);
    return dy * T(a) * T(b) * fast::Conj(T(1) - t * t);
  }
  double a, b;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(stanh) { DefineUnary<Stanh, complex64, complex128>(op, "scale_b * tanh(scale_a * x)"); }
HEDDLE_OP(stanh_grad) { DefineUnaryGrad<Stanh, complex64, complex128>(op); }

HEDDLE_TILE(stanh) { return UnaryTile<Stanh>(); }
HEDDLE_TILE(stanh_grad) { return UnaryGradTile<Stanh>(); }

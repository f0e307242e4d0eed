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

struct AlphaAtZero {
  static constexpr Key kAttr = "alpha_at_zero";
};
// The slope is alpha at 0 and NaN, too.
struct LeakyReluGradAtZero : LeakyReluAttrs {
  static constexpr Key kIns[] = {"X", "Out@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD"};
  using LeakyReluAttrs::LeakyReluAttrs;
  template <typename T>
  T operator()(T x, T dy) const {
    return dy * fast::Select(x > T(0), T(above), T(below));
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
HEDDLE_OP(leaky_relu_grad) { DefineGradOr<AlphaAtZero, LeakyReluGradAtZero, LeakyRelu>(op); }
HEDDLE_OP(leaky_relu_grad_grad) {
  DefineMap<LeakyReluGradGrad>(op).Inplace("grad_x@GRAD", "grad_out@GRAD");
}

HEDDLE_TILE(leaky_relu) { return UnaryTile<LeakyRelu>(); }
HEDDLE_TILE(leaky_relu_grad) {
  return EitherMap<AlphaAtZero, LeakyReluGradAtZero, GradMap<LeakyRelu>>::Tile();
}

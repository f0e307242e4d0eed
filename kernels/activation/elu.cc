// elu, celu, selu: exponential on the negative side.
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct AlphaAttr : UnaryOp {
  explicit AlphaAttr(const KernelContext& ctx) : alpha(ctx.Float("alpha")) {}
  static void Declare(OpDef& op) { op.Attr("alpha", 1.0); }
  double alpha;
};

struct Elu : AlphaAttr {
  static constexpr GradReads kReads = kReadsX;
  using AlphaAttr::AlphaAttr;
  template <typename T>
  T Forward(T x) const {
    return fast::Select(x < T(0), T(alpha) * (fast::Exp(x) - T(1)), x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return fast::Select(x > T(0), dy, dy * T(alpha) * fast::Exp(x));
  }
};

struct OfResult {
  static constexpr Key kAttr = "of_result";
};
// X holds elu's result.
struct EluGradOfResult : AlphaAttr {
  static constexpr Key kIns[] = {"X", "Out@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD"};
  using AlphaAttr::AlphaAttr;
  template <typename T>
  T operator()(T y, T dy) const {
    return y < T(0) ? (y + T(alpha)) * dy : dy;
  }
};

struct EluGradGrad : AlphaAttr {
  static constexpr Key kIns[] = {"X", "grad_out", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD", "grad_out@GRAD"};
  using AlphaAttr::AlphaAttr;
  template <typename T>
  std::array<T, 2> operator()(T x, T dy, T ddx) const {
    const T slope = T(alpha) * fast::Exp(x);
    return {fast::Select(x > T(0), T(0), ddx * dy * slope),
            fast::Select(x > T(0), ddx, ddx * slope)};
  }
};

struct Celu : AlphaAttr {
  static constexpr GradReads kReads = kReadsX;
  using AlphaAttr::AlphaAttr;
  template <typename T>
  T Forward(T x) const {
    return fast::Select(x < T(0), T(alpha) * (fast::Exp(x / T(alpha)) - T(1)), x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return fast::Select(x > T(0), dy, dy * fast::Exp(x / T(alpha)));
  }
};

struct CeluGradGrad : AlphaAttr {
  static constexpr Key kIns[] = {"X", "grad_out", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD", "grad_out@GRAD"};
  using AlphaAttr::AlphaAttr;
  template <typename T>
  std::array<T, 2> operator()(T x, T dy, T ddx) const {
    const T slope = fast::Exp(x / T(alpha));
    return {fast::Select(x > T(0), T(0), ddx * dy * slope / T(alpha)),
            fast::Select(x > T(0), ddx, ddx * slope)};
  }
};

struct Selu : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  explicit Selu(const KernelContext& ctx) : scale(ctx.Float("scale")), alpha(ctx.Float("alpha")) {}
  static void Declare(OpDef& op) {
    op.Attr("scale", double{1.0507009873554804934193349852946f});
    op.Attr("alpha", double{1.6732632423543772848170429916717f});
  }
  template <typename T>
  T Forward(T x) const {
    return T(scale) * fast::Select(x > T(0), x, T(alpha) * fast::Exp(x) - T(alpha));
  }
  template <typename T>
  T Grad(T y, T dy) const {
    // Paddle multiplies the two attributes in single precision.
    const float product = static_cast<float>(scale) * static_cast<float>(alpha);
    return dy * fast::Select(y > T(0), T(scale), y + T(product));
  }
  double scale, alpha;
};

struct ScaleAtZero {
  static constexpr Key kAttr = "scale_at_zero";
};
// The slope is scale at 0 and NaN, too.
struct SeluGradAtZero : Selu {
  static constexpr Key kIns[] = {"Out", "Out@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD"};
  using Selu::Selu;
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * fast::Select(y < T(0), y + T(scale * alpha), T(scale));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(elu) { DefineUnary<Elu>(op, "x, or alpha * (exp(x) - 1) where negative."); }
HEDDLE_OP(elu_grad) {
  DefineGradOr<OfResult, EluGradOfResult, Elu>(op).Input("Out", kOptional | kNoBuffer);
}
HEDDLE_OP(elu_grad_grad) { DefineMap<EluGradGrad>(op); }
HEDDLE_OP(celu) { DefineUnary<Celu>(op, "x, or alpha * (exp(x / alpha) - 1) where negative."); }
HEDDLE_OP(celu_grad) { DefineUnaryGrad<Celu>(op); }
HEDDLE_OP(celu_grad_grad) { DefineMap<CeluGradGrad>(op); }
HEDDLE_OP(selu) { DefineUnary<Selu>(op, "scale * elu(x, alpha)"); }
HEDDLE_OP(selu_grad) { DefineGradOr<ScaleAtZero, SeluGradAtZero, Selu>(op); }

HEDDLE_TILE(elu) { return UnaryTile<Elu>(); }
HEDDLE_TILE(elu_grad) { return EitherMap<OfResult, EluGradOfResult, GradMap<Elu>>::Tile(); }

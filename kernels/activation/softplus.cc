// softplus, logsigmoid and soft_relu.
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct SoftplusAttrs : UnaryOp {
  explicit SoftplusAttrs(const KernelContext& ctx)
      : beta(ctx.Float("beta")), threshold(ctx.Float("threshold")) {}
  static void Declare(OpDef& op) { op.Attr("beta", 1.0).Attr("threshold", 20.0); }
  double beta, threshold;
};

struct Softplus : SoftplusAttrs {
  static constexpr GradReads kReads = kReadsX;
  using SoftplusAttrs::SoftplusAttrs;
  template <typename T>
  T Forward(T x) const {
    const T z = x * T(beta);
    return fast::Select(fast::Less(T(threshold), z), x, fast::Softplus(z) / T(beta));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T z = x * T(beta);
    return fast::Select(fast::Less(T(threshold), z), dy, dy * fast::Conj(fast::Sigmoid(z)));
  }
};

struct SoftplusDoubleGrad : SoftplusAttrs {
  static constexpr Key kIns[] = {"X", "grad_out", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD", "grad_out@GRAD"};
  using SoftplusAttrs::SoftplusAttrs;
  template <typename T>
  std::array<T, 2> operator()(T x, T dy, T ddx) const {
    const T z = x * T(beta);
    const bool linear = fast::Less(T(threshold), z);
    const T s = fast::Sigmoid(z);
    return {fast::Select(linear, T(0), ddx * dy * T(beta) * s * (T(1) - s)),
            fast::Select(linear, ddx, ddx * s)};
  }
};

struct LogSigmoid : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return -fast::Softplus(-x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * fast::Conj(fast::Sigmoid(-x));
  }
};

struct SoftRelu : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  explicit SoftRelu(const KernelContext& ctx) : threshold(ctx.Float("threshold")) {}
  static void Declare(OpDef& op) { op.Attr("threshold", 40.0); }
  template <typename T>
  T Forward(T x) const {
    return fast::Softplus(fast::Clamp(x, T(-threshold), T(threshold)));
  }
  template <typename T>
  T Grad(T y, T dy) const {
    const bool inside = (y > T(-threshold)) & (y < T(threshold));
    return fast::Select(inside, dy * (T(1) - fast::Exp(-y)), T(0));
  }
  double threshold;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(softplus) {
  DefineUnary<Softplus, complex64, complex128>(op,
                                               "log(1 + exp(beta * x)) / beta, or x when large");
}
HEDDLE_OP(softplus_grad) { DefineUnaryGrad<Softplus, complex64, complex128>(op); }
HEDDLE_OP(softplus_double_grad) { DefineMap<SoftplusDoubleGrad, complex64, complex128>(op); }
HEDDLE_OP(logsigmoid) { DefineUnary<LogSigmoid, complex64, complex128>(op, "log(sigmoid(x))"); }
HEDDLE_OP(logsigmoid_grad) { DefineUnaryGrad<LogSigmoid, complex64, complex128>(op); }
HEDDLE_OP(soft_relu) { DefineUnary<SoftRelu>(op, "log(1 + exp(x)), x kept within the threshold."); }
HEDDLE_OP(soft_relu_grad) { DefineUnaryGrad<SoftRelu>(op); }

HEDDLE_TILE(softplus) { return UnaryTile<Softplus>(); }
HEDDLE_TILE(softplus_grad) { return UnaryGradTile<Softplus>(); }
HEDDLE_TILE(logsigmoid) { return UnaryTile<LogSigmoid>(); }
HEDDLE_TILE(logsigmoid_grad) { return UnaryGradTile<LogSigmoid>(); }

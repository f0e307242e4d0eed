// Gradients of activations whose borders differ from those of Paddle's operators.
#include "kernels/elementwise/slots.h"
#include "kernels/elementwise/tile_loop.h"

namespace heddle {
namespace {

constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

struct EluGrad : UnaryOp {
  static constexpr Key kIns[] = {"gradients", "outputs"};
  static constexpr Key kOuts[] = {"backprops"};
  template <typename T>
  T operator()(T g, T y) const {
    return y < T(0) ? (y + T(1)) * g : g;
  }
};
struct SeluGrad : UnaryOp {
  static constexpr Key kIns[] = {"gradients", "outputs"};
  static constexpr Key kOuts[] = {"backprops"};
  template <typename T>
  T operator()(T g, T y) const {
    return y < T(0) ? g * (y + T(kSeluScaleAlpha)) : g * T(kSeluScale);
  }
};
struct ReluGrad : UnaryOp {
  static constexpr Key kIns[] = {"gradients", "features"};
  static constexpr Key kOuts[] = {"backprops"};
  template <typename T>
  T operator()(T g, T x) const {
    return g * (x > T(0) ? T(1) : T(0));
  }
};
struct Relu6Grad : UnaryOp {
  static constexpr Key kIns[] = {"gradients", "features"};
  static constexpr Key kOuts[] = {"backprops"};
  template <typename T>
  T operator()(T g, T x) const {
    return g * ((x > T(0)) & (x < T(6)) ? T(1) : T(0));
  }
};
struct LeakyReluGrad : UnaryOp {
  static constexpr Key kIns[] = {"gradients", "features"};
  static constexpr Key kOuts[] = {"backprops"};
  explicit LeakyReluGrad(const KernelContext& ctx) : alpha(ctx.Float("alpha")) {}
  static void Declare(OpDef& op) { op.Attr("alpha", 0.2); }
  template <typename T>
  T operator()(T g, T x) const {
    return x > T(0) ? g : g * T(alpha);
  }
  double alpha;
};
struct SoftplusGrad : SlowUnaryOp {
  static constexpr Key kIns[] = {"gradients", "features"};
  static constexpr Key kOuts[] = {"backprops"};
  template <typename T>
  T operator()(T g, T x) const {
    return g / (std::exp(-x) + T(1));
  }
};
struct SoftsignGrad : UnaryOp {
  static constexpr Key kIns[] = {"gradients", "features"};
  static constexpr Key kOuts[] = {"backprops"};
  template <typename T>
  T operator()(T g, T x) const {
    const T d = T(1) + std::abs(x);
    return g / (d * d);
  }
};

// From the result y and its gradient dy.
struct SigmoidGrad : UnaryOp {
  static constexpr Key kIns[] = {"y", "dy"};
  static constexpr Key kOuts[] = {"z"};
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * y * (T(1) - y);
  }
};
struct TanhGrad : UnaryOp {
  static constexpr Key kIns[] = {"y", "dy"};
  static constexpr Key kOuts[] = {"z"};
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * (T(1) - y * y);
  }
};
struct SqrtGrad : UnaryOp {
  static constexpr Key kIns[] = {"y", "dy"};
  static constexpr Key kOuts[] = {"z"};
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * T(0.5) / Conj(y);
  }
};
struct RsqrtGrad : UnaryOp {
  static constexpr Key kIns[] = {"y", "dy"};
  static constexpr Key kOuts[] = {"z"};
  template <typename T>
  T operator()(T y, T dy) const {
    const T c = Conj(y);
    return T(-0.5) * (dy * c) * (c * c);
  }
};
struct ReciprocalGrad : UnaryOp {
  static constexpr Key kIns[] = {"y", "dy"};
  static constexpr Key kOuts[] = {"z"};
  template <typename T>
  T operator()(T y, T dy) const {
    const T c = Conj(y);
    return -dy * c * c;
  }
};

template <typename M, typename... More>
void DefineTfGrad(OpDef& op, const char* doc) {
  DefineMap<M, More...>(op).Doc(doc).Inplace(M::kIns[0].name, M::kOuts[0].name);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_elu_grad) { DefineTfGrad<EluGrad>(op, "gradient of elu from its result"); }
HEDDLE_OP(tf_selu_grad) { DefineTfGrad<SeluGrad>(op, "gradient of selu from its result"); }
HEDDLE_OP(tf_relu_grad) {
  DefineTfGrad<ReluGrad, int32_t, int64_t>(op, "gradients where features are positive, else 0");
}
HEDDLE_OP(tf_relu6_grad) {
  DefineTfGrad<Relu6Grad>(op, "gradients where features lie between 0 and 6, else 0");
}
HEDDLE_OP(tf_leaky_relu_grad) { DefineTfGrad<LeakyReluGrad>(op, "gradient of leaky_relu"); }
HEDDLE_OP(tf_softplus_grad) { DefineTfGrad<SoftplusGrad>(op, "gradients / (1 + exp(-x))"); }
HEDDLE_OP(tf_softsign_grad) { DefineTfGrad<SoftsignGrad>(op, "gradients / (1 + |x|)²"); }
HEDDLE_OP(tf_sigmoid_grad) { DefineTfGrad<SigmoidGrad, complex64, complex128>(op, "dy y (1 - y)"); }
HEDDLE_OP(tf_tanh_grad) { DefineTfGrad<TanhGrad, complex64, complex128>(op, "dy (1 - y²)"); }
HEDDLE_OP(tf_sqrt_grad) { DefineTfGrad<SqrtGrad, complex64, complex128>(op, "dy / (2 y)"); }
HEDDLE_OP(tf_rsqrt_grad) { DefineTfGrad<RsqrtGrad, complex64, complex128>(op, "-dy y³ / 2"); }
HEDDLE_OP(tf_reciprocal_grad) { DefineTfGrad<ReciprocalGrad, complex64, complex128>(op, "-dy y²"); }

HEDDLE_TILE(tf_elu_grad) { return MapTile<EluGrad>(); }
HEDDLE_TILE(tf_relu_grad) { return MapTile<ReluGrad>(); }
HEDDLE_TILE(tf_relu6_grad) { return MapTile<Relu6Grad>(); }
HEDDLE_TILE(tf_leaky_relu_grad) { return MapTile<LeakyReluGrad>(); }
HEDDLE_TILE(tf_sigmoid_grad) { return MapTile<SigmoidGrad>(); }
HEDDLE_TILE(tf_tanh_grad) { return MapTile<TanhGrad>(); }
HEDDLE_TILE(tf_sqrt_grad) { return MapTile<SqrtGrad>(); }
HEDDLE_TILE(tf_rsqrt_grad) { return MapTile<RsqrtGrad>(); }
HEDDLE_TILE(tf_reciprocal_grad) { return MapTile<ReciprocalGrad>(); }

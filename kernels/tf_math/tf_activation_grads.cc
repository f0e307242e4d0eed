// Gradients of activations whose borders differ from those of Paddle's operators.
#include "kernels/elementwise/tile_loop.h"
#include "kernels/tf_math/slots.h"

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

HEDDLE_EXAMPLES(tf_elu_grad, R"(
example recorded case 1
in gradients float32 [3] -0.78905565 -0.97625196 -2.1988692
in outputs float32 [3] 0.6692144 -0.21360704 -0.6456103
out backprops float32 [3] -0.78905565 -0.76771766 -0.77925664
)")

HEDDLE_EXAMPLES(tf_selu_grad, R"(
example recorded case 1
in gradients float64 [] 2.571658915737054
in outputs float64 [] 0.22796944864173652
out backprops float64 [] 2.702044561906447
)")

HEDDLE_EXAMPLES(tf_relu_grad, R"(
example recorded case 1
in gradients float32 [] -1.6898115
in features float32 [] 1.2356144
out backprops float32 [] -1.6898115
)")

HEDDLE_EXAMPLES(tf_relu6_grad, R"(
example recorded case 1
in gradients float64 [5, 3] -0.6323417456386147 1.9466409865887437 1.248227468946929
  -2.0253177288888526 -2.2021215831691983 0.9044760828786779 0.5329045343355878 -3.122323962913779
  -0.8756037407036527 1.7767031254383072 1.5645281721412143 0.08929229045901386 -0.886329661842348
  -2.07344778190394 1.6148811240692194
in features float64 [5, 3] 1.4791629901053083 -1.8792276470909268 21.589622561705134
  25.008209731417764 -8.319024954371256 -1.4823832840822735 -18.25119019605984 2.8074785692535493
  -21.241003749203067 9.942066011912345 10.191782615859314 5.420516562078873 -10.70414317051683
  -9.644440620284904 -23.82693108922776
out backprops float64 [5, 3] -0.6323417456386147 0 0 -0 -0 0 0 -3.122323962913779 -0 0 0
  0.08929229045901386 -0 -0 0
)")

HEDDLE_EXAMPLES(tf_leaky_relu_grad, R"(
example recorded case 1
attr alpha FLOAT 0.10000000149011612
in gradients float32 [1] -1.7576511
in features float32 [1] 2.0059109
out backprops float32 [1] -1.7576511
)")

HEDDLE_EXAMPLES(tf_softplus_grad, R"(
example recorded case 1
in gradients float64 [5] 2.137403399423161 0.09860843777274547 0.25960724490392867
  0.6268987242527302 -0.8516832826803196
in features float64 [5] 0.05755610959783208 1.9117652318551825 2.103615347803262 0.6500822963077311
  -0.8718239686406861
out backprops float64 [5] 1.0994483683693264 0.08590938012917851 0.23137601496688773
  0.4118906467359083 -0.25114003461249523
)")

HEDDLE_EXAMPLES(tf_softsign_grad, R"(
example recorded case 1
in gradients float32 [] 0.50834465
in features float32 [] -1.7207905
out backprops float32 [] 0.06867016
)")

HEDDLE_EXAMPLES(tf_sigmoid_grad, R"(
example recorded case 1
in y float32 [] 0.8085683
in dy float32 [] -2.4258556
out z float32 [] -0.37548754
)")

HEDDLE_EXAMPLES(tf_tanh_grad, R"(
example recorded case 1
in y float32 [2, 2] 0.6674442 -0.8794436 0.1296064 0.03757473
in dy float32 [2, 2] 0.04572012 -3.3813326 0.58972025 1.4281849
out z float32 [2, 2] 0.02535264 -0.7661388 0.5798142 1.4261684
)")

HEDDLE_EXAMPLES(tf_sqrt_grad, R"(
example recorded case 1
in y float32 [0]
in dy float32 [0]
out z float32 [0]
)")

HEDDLE_EXAMPLES(tf_rsqrt_grad, R"(
example recorded case 1
in y float32 [1, 2, 2] 1.699504 2.247606 0.91443056 3.0030193
in dy float32 [1, 2, 2] -0.101589665 1.2369956 0.4864708 -0.18315797
out z float32 [1, 2, 2] 0.24933667 -7.0226126 -0.18598546 2.4801059
)")

HEDDLE_EXAMPLES(tf_reciprocal_grad, R"(
example recorded case 1
in y float64 [0]
in dy float64 [0]
out z float64 [0]
)")

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

HEDDLE_EXAMPLES(logsigmoid, R"(
example float64 4x3
in X float64 [4, 3] -0.22 -0.82 -0.37 0.68 -0.52 -0.67 0.38 0.53 0.08 0.83 0.23 -0.07
out Out float64 [4, 3] -0.8091850189505918 -1.1849428287424455 -0.8951629497306351
  -0.40986673496366205 -0.986573094164618 -1.0832405196215205 -0.5210896138659373
  -0.4628562535503843 -0.6539469673175899 -0.3618957919879777 -0.5847451567037304
  -0.7287595555486972

example complex128 4x3
in X complex128 [4, 3] 0.8+0.6j 1.5-1.5j 0.9-0.9j -1.1+1.8j 1.5-0.7j -1.2-0.2j 1+1.3j -0.3-1.2j
  -1.4-0.1j 0.8+0.1j 0.6+1.3j 0.2-0.6j
out Out complex128 [4, 3] -0.3322686235284097+0.18300476083417713j
  -0.03910710817169904-0.2157039386651366j -0.25663763535722084-0.24895284769608528j
  -1.0793520578854652+1.46271250049788j -0.1650494896614648-0.12217767543170487j
  -1.4597237767295876-0.15383263342163606j -0.1433970813476592+0.3121644144293422j
  -0.6675508158564514-0.7015076484547587j -1.619624030157505-0.08023437834586147j
  -0.3700308649766413+0.030988996592052842j -0.23337642197327346+0.43206024257103237j
  -0.5529222757796239-0.26917884915266665j

example complex64 4x3
in X complex64 [4, 3] -0.5+0.6j -1.1+0.8j -1.2-1.1j 0.5+0.7j 1.5-0.6j -1.6+1j 0.4-1.5j 0.7+0.6j
  0.4-1.1j 1.1-0.9j 1.2+0.7j 1.3+1.9j
out Out complex64 [4, 3] -0.93124706+0.37561777j -1.3270103+0.60854j -1.3551958-0.86808723j
  -0.4155146+0.26083475j -0.17465954-0.10599654j -1.7151321+0.8480011j -0.21724069-0.568157j
  -0.36287883+0.19631995j -0.36073074-0.42957374j -0.21087754-0.21277376j -0.21959497+0.15641655j
  0.053759087+0.27561688j

example float64 scalar
in X float64 [] 0.179
out Out float64 [] -0.6076469699450555

example float32 4x3
in X float32 [4, 3] -0.22 -0.82 -0.37 0.68 -0.52 -0.67 0.38 0.53 0.08 0.83 0.23 -0.07
out Out float32 [4, 3] -0.809185 -1.1849427 -0.895163 -0.40986672 -0.9865731 -1.0832405 -0.5210897
  -0.46285623 -0.65394694 -0.36189574 -0.58474517 -0.7287595
)")

HEDDLE_EXAMPLES(logsigmoid_grad, R"(
example float64 scalar
in Out@GRAD float64 [] -0.2
in X float64 [] 0.179
out X@GRAD float64 [] -0.09107382092412065

example complex64 4x3
in Out@GRAD complex64 [4, 3] 0.2-0.8j 1.2+0.1j -2+0j 0.9+1.8j 0.1+1.1j -0.9-2j 0.8-0.7j 0.1-0.6j
  1+1.3j 0.3+0.8j 1.1+1.2j -1.3-1.7j
in X complex64 [4, 3] 1.9+1j 1.9-1.6j 0.9+0.1j -1.3-1.6j -0.2+1.4j -0.5+1.9j 1.9-0.2j -1.3-1j
  1.2-1.1j 0+1.4j -1.3+0.9j -0.7+1.4j
out X@GRAD complex64 [4, 3] 0.10246892-0.048458733j 0.036062848-0.1752162j -0.5772329-0.041116018j
  1.3069171+1.4555585j -0.39698777+0.6844561j 0.4349621-2.1772814j 0.08693437-0.10797222j
  -0.016709581-0.51964986j 0.42251477+0.019878522j -0.18691534+0.5263433j 0.7290202+1.1592462j
  -0.40823156-1.7519057j

example float64 4x3
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] 0.23 0.53 -0.67 0.08 -0.22 -0.07 -0.52 0.83 0.68 -0.82 -0.37 0.38
out X@GRAD float64 [4, 3] -0.2656512872408666 -0.22231013281956308 -0.46305221144206665
  0.2400053299222091 -0.2773896175536074 0.1552478572999169 0.12542955326263913 -0.06072901403523319
  0.23538291181695312 -0 -0.29572948921639003 0.2842888279461001

example float32 scalar
in Out@GRAD float32 [] -0.2
in X float32 [] 0.179
out X@GRAD float32 [] -0.091073826
)")

HEDDLE_EXAMPLES(soft_relu, R"(
example threshold 40
attr threshold FLOAT 40.0
in X float32 [7] -45 -3 -1 0 1.5 3 50
out Out float32 [7] 0 0.04858733 0.31326166 0.6931472 1.7014133 3.0485873 40

example threshold 2
attr threshold FLOAT 2.0
in X float32 [5] -3 -1 0.5 1.5 3
out Out float32 [5] 0.12692805 0.31326166 0.974077 1.7014133 2.126928

example float64
in X float64 [3] -2 0 1.5
out Out float64 [3] 0.1269280110429726 0.6931471805599453 1.7014132779827524
)")

HEDDLE_EXAMPLES(soft_relu_grad, R"(
example threshold 40
in Out float64 [7] 0 0.04858735157374196 0.31326168751822286 0.6931471805599453 1.7014132779827524
  3.048587351573742 40
in Out@GRAD float64 [7] -0.4 0.6 -0.3 -0.6 -0.8 0.9 0.7
out X@GRAD float64 [7] -0 0.02845552390653998 -0.08068242641099853 -0.3 -0.654059580954915
  0.85731671414019 0

example threshold 2
attr threshold FLOAT 2.0
in Out float64 [5] 0.1269280110429726 0.31326168751822286 0.9740769841801067 1.7014132779827524
  2.1269280110429727
in Out@GRAD float64 [5] -0.8 0.4 0.1 -0.3 -0.2
out X@GRAD float64 [5] -0.09536233761769415 0.10757656854799805 0.06224593312018546
  -0.24527234285809307 -0
)")

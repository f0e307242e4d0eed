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

HEDDLE_EXAMPLES(softplus, R"(
example float64 4x3, beta 2, threshold 15
attr beta FLOAT 2.0
attr threshold FLOAT 15.0
in X float64 [4, 3] 0.08 0.38 -0.38 -0.23 0.84 -0.84 -0.69 -0.08 0.54 0.23 -0.53 0.69
out Out float64 [4, 3] 0.3881718865203699 0.5718368374072469 0.1918368374072469 0.24468360873713862
  0.9254507881839352 0.08545078818393528 0.11220279852358533 0.3081718865203698 0.6861838609321792
  0.4746836087371386 0.148737907278995 0.8022027985235852

example float32 2x4
in X float32 [2, 4] -0.3654 0.28939998 0.4222 0.19940001 0.19619998 0.021599993 -0.26160002
  -0.037200004
out Out float32 [2, 4] 0.52704483 0.8482799 0.92636514 0.79780906 0.79605126 0.7040054 0.57087725
  0.67472017

example complex128 4x3, beta 2, threshold 15
attr beta FLOAT 2.0
attr threshold FLOAT 15.0
in X complex128 [4, 3] 0.3-0.6j 0.1-0.2j 0.6-1.9j 0.1-0.4j -1.5-1.1j -1.1-2j -0.6+1.9j 1.3-1.4j
  1.9-1j -0.9+0.1j -1.5-1.8j 1.1-0.1j
# Paddle evaluates complex exponentials and logarithms partly in single precision.
close 2e-07 1e-08
out Out complex128 [4, 3] 0.43249914859941757-0.39836009969385977j
  0.3891040716067167-0.1101004760234369j 0.478160938593083+1.1229117543454838j
  0.35839845584505586-0.22105701721080737j -0.014439256104854808-0.02072195479389254j
  -0.035556326912084185+0.04507928567507636j -0.12183906955486316-0.11868093222833877j
  1.2639030061294099-1.3866266499641788j 1.8954287909605303-0.989735031781201j
  0.07527261449147374+0.014126923667988353j -0.022704250295395464+0.011528662789718121j
  1.1516450697898484-0.09007287993996599j

example float64 3
in X float64 [3] -4 -2 -4
out Out float64 [3] 0.01814992791780978 0.1269280110429726 0.01814992791780978

example complex64 2x4
in X complex64 [2, 4] -0.3654+0.8j 0.28939998+0.3j 0.4222+0.5j 0.19940001-0.7j 0.19619998-0.8j
  0.021599993+0.6j -0.26160002-0.3j -0.037200004+0.1j
out Out complex64 [2, 4] 0.44772547+0.32375193j 0.83722323+0.1717145j 0.89619285+0.30306613j
  0.73592347-0.38625732j 0.71467614-0.44131994j 0.6583195+0.30334067j 0.5597779-0.13034602j
  0.6734701+0.049069334j
)")

HEDDLE_EXAMPLES(softplus_grad, R"(
example float64 3x3
in Out@GRAD float64 [3, 3] 0 0.4 -0.5 0.3 0.8 0.4 -0.6 -0.4 -0.5
in X float64 [3, 3] 0.3568 0.3888000000000001 -0.24869999999999998 0.3337000000000001
  0.6593000000000001 -0.4043999999999999 -0.14200000000000004 -0.1189 0.22030000000000005
out X@GRAD float64 [3, 3] 0 0.23839751615238453 -0.21907174962106443 0.1747978111662525
  0.5272825005085775 0.160102261260646 -0.27873571907778005 -0.18812398784433182 -0.2774266668297804

example complex64 4x3, beta 2, threshold 15
attr beta FLOAT 2.0
attr threshold FLOAT 15.0
in Out@GRAD complex64 [4, 3] 0.6-0.4j -1.5-1.3j 1.8+1j -0.1-1.7j 1.5+1.5j -1.2+1.8j -1.8+1.7j
  -0.4-0.3j -1.1-1.9j 1.4+1.9j -1.2-0.6j 1+0.8j
in X complex64 [4, 3] -0.6+0.8j -1.9-0.4j 1.4+1.5j 0.6-1.3j 1.1-0.3j 0.2-1.9j 1.5+0.8j 1.6-0.1j
  -2-1.5j -1.7+1.6j -1+1.7j -1.5-1.7j
out X@GRAD complex64 [4, 3] -0.06641552-0.198866j -0.0031670206-0.043602932j 1.9248598+1.0464816j
  0.3302849-2.2222612j 1.2912972+1.4483387j 0.44865844+3.4397452j -1.7135161+1.7878737j
  -0.38236445-0.291453j 0.025400113+0.032125138j -0.05220553-0.062556125j 0.20588845+0.034383j
  -0.03914893-0.054343745j

example complex128 4x3, beta 2, threshold 15
attr beta FLOAT 2.0
attr threshold FLOAT 15.0
in Out@GRAD complex128 [4, 3] 0.08333333333333333+0j*12
in X complex128 [4, 3] -1.9+0j 1+1.8j 0-0.7j -0.1-1.1j -1.8-1.1j 0.2-1.1j 1.3+0.3j -1.9-1.4j
  -1.5-1.8j 0.3+1.6j -1.1-0.8j 1.3-0.8j
# Paddle evaluates complex exponentials and logarithms partly in single precision.
close 2e-07 1e-08
out X@GRAD complex128 [4, 3] 0.001823439291527504+0j 0.09440527865187412+0.006434741371184139j
  0.04166666651762431+0.035095348607105885j 0.02222813900031799+0.07805846808747315j
  -0.0013192297752692788+0.0019006332160648109j 0.07641226497173423+0.06839081798032019j
  0.07839758992129607-0.0030979345400589655j -0.0017893531904822147+0.0006516401834118421j
  -0.0038480914288542244-0.0020105269544523534j 0.18339433551587928+0.012994881115598843j
  0.0007491448316914849+0.009176376089258564j 0.08305467767965113+0.00617954024217898j

example float32 3x3
in Out@GRAD float32 [3, 3] 0 0.4 -0.5 0.3 0.8 0.4 -0.6 -0.4 -0.5
in X float32 [3, 3] 0.3568 0.3888 -0.2487 0.3337 0.6593 -0.4044 -0.142 -0.1189 0.2203
out X@GRAD float32 [3, 3] 0 0.23839752 -0.21907176 0.17479782 0.52728254 0.16010228 -0.27873576
  -0.18812399 -0.27742666
)")

HEDDLE_EXAMPLES(softplus_double_grad, R"(
example float64 scalar, beta 2, threshold 15
attr beta FLOAT 2.0
attr threshold FLOAT 15.0
in X float64 [] 0.295
in grad_out float64 [] 0.516
in grad_x@GRAD float64 [] -0.6
out X@GRAD float64 [] -0.1420732325520142
out grad_out@GRAD float64 [] -0.38601908741664104

example float64 4x3, beta 2, threshold 15
attr beta FLOAT 2.0
attr threshold FLOAT 15.0
in X float64 [4, 3] 0.08 0.38 -0.38 -0.23 0.84 -0.84 -0.69 -0.08 0.54 0.23 -0.53 0.69
in grad_out float64 [4, 3] 0.752 0.676 0.599 0.37 0.523 0.905 0.982 0.141 0.447 0.217 0.829 0.294
in grad_x@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out X@GRAD float64 [4, 3] 0.037360383019433736 -0.1467669165107668 0.052019753248490716
  -0.14043885522699595 0.12465687666420329 0 0.2523416046367428 -0.05604057452915062
  -0.13534496021074327 -0.10295686346033152 0.19010757246473742 -0.0944353764806548
out grad_out@GRAD float64 [4, 3] 0.05399148845555657 -0.3406768668945128 0.0637292532421949
  -0.30958865908853167 0.7586140780030927 0 0.16080719980042352 -0.36806809235554744
  -0.5971951866701297 -0.6130141761393355 0.15438567281838853 -0.7989910002494707

example complex128 4x3, beta 2, threshold 15
attr beta FLOAT 2.0
attr threshold FLOAT 15.0
in X complex128 [4, 3] -1.1-0.6j 0.8-0.6j -0.7-1.6j -1.6+0.4j 0.9+1.6j 1.7+1.4j 1-0.8j 1.4+0.3j
  1.2-1.6j 0.5-0.6j -1.5+0.6j 1.8+0j
in grad_out complex128 [4, 3] 1.6+0.2j -0.8+1.1j 0.5+0.7j -0.4-0.7j -1.3+0.4j 1.6+1.8j -0.9-1.2j
  -1.8-0.7j 0+1.6j 1.9+1.8j -0.6+1j 1.2+1.8j
in grad_x@GRAD complex128 [4, 3] -0.8+1.2j 0.8+1.3j -1.1-1.4j -1.5+0.1j -0.6-0.7j 1.1+1j 0.2+1.1j
  0.7-0.4j 1.1-0.6j 0.8+1.2j -0.5+0j -0.4-1.9j
# Paddle evaluates complex exponentials and logarithms partly in single precision.
close 2e-07 1e-08
out X@GRAD complex128 [4, 3] 0.13475070262508196+0.45202297278955855j
  -0.422218481941395-0.5661135596885185j -0.24832680775502217+1.3054084519735019j
  -0.014636154888485627+0.09219758148761864j -0.5267629409392032-0.27568126058028675j
  0.09349169675099687-0.23692285455162526j 0.39280946407711653+0.218006606773533j
  -0.13305817944272452+0.1082360763886268j -0.18304809625521076-0.3998723574623365j
  -1.3971138566290924+1.40441814232469j 0.055733202448592783+0.004385406941234723j
  0.15223081839938177-0.15533756979528757j
out grad_out@GRAD complex128 [4, 3] 0.0750383654186038+0.1332001440203202j
  0.929301602422316+1.0484266629136023j 0.39414736735099326+0.42866654324604375j
  -0.04536343273082257-0.038598934642590225j -0.7281682683822106-0.829925620380129j
  1.123645465635335+1.0454357276638833j 0.344428730447621+1.0575858095969344j
  0.6782748276423493-0.3587077122864682j 1.2133403885180434-0.6526838163449072j
  0.940192727588135+0.7743982286958773j -0.009878811405266731-0.022340301011118013j
  -0.38936120171470723-1.8494657081448593j

example float32 4x3, beta 2, threshold 15
attr beta FLOAT 2.0
attr threshold FLOAT 15.0
in X float32 [4, 3] 0.08 0.38 -0.38 -0.23 0.84 -0.84 -0.69 -0.08 0.54 0.23 -0.53 0.69
in grad_out float32 [4, 3] 0.752 0.676 0.599 0.37 0.523 0.905 0.982 0.141 0.447 0.217 0.829 0.294
in grad_x@GRAD float32 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out X@GRAD float32 [4, 3] 0.03736038 -0.14676692 0.052019756 -0.14043885 0.12465687 0 0.2523416
  -0.056040578 -0.13534495 -0.102956854 0.1901076 -0.09443537
out grad_out@GRAD float32 [4, 3] 0.05399149 -0.34067687 0.06372926 -0.30958867 0.75861406 0
  0.1608072 -0.3680681 -0.5971952 -0.61301416 0.15438569 -0.79899096
)")

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
# Paddle evaluates complex exponentials and logarithms partly in single precision.
close 2e-07 1e-08
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

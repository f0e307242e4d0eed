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

}  // namespace
}  // namespace heddle

HEDDLE_OP(elu) { DefineUnary<Elu>(op, "x, or alpha * (exp(x) - 1) where negative."); }
HEDDLE_OP(elu_grad) { DefineUnaryGrad<Elu>(op).Input("Out", kOptional | kNoBuffer); }
HEDDLE_OP(elu_grad_grad) { DefineMap<EluGradGrad>(op); }
HEDDLE_OP(celu) { DefineUnary<Celu>(op, "x, or alpha * (exp(x / alpha) - 1) where negative."); }
HEDDLE_OP(celu_grad) { DefineUnaryGrad<Celu>(op); }
HEDDLE_OP(celu_grad_grad) { DefineMap<CeluGradGrad>(op); }
HEDDLE_OP(selu) { DefineUnary<Selu>(op, "scale * elu(x, alpha)"); }
HEDDLE_OP(selu_grad) { DefineUnaryGrad<Selu>(op); }

HEDDLE_TILE(elu) { return UnaryTile<Elu>(); }
HEDDLE_TILE(elu_grad) { return UnaryGradTile<Elu>(); }

HEDDLE_EXAMPLES(elu, R"(
example float32 5, alpha 1.02738
attr alpha FLOAT 1.0273787
in X float32 [5] -0.54 0.07 1.28 0.67 -1.15
out Out float32 [5] -0.42867556 0.07 1.28 0.67 -0.7020728

example float64 4x3, alpha -0.2
attr alpha FLOAT -0.2
in X float64 [4, 3] 2.52 -2.52 0.23 2.07 1.61 -1.6 -0.68 -0.23 1.15 -1.14 -2.06 0.69
out Out float64 [4, 3] 2.52 0.18390808139053744 0.23 2.07 1.61 0.15962069877960264
  0.09867660299727804 0.041093280111670794 1.15 0.13603619766383648 0.17450920862142566 0.69

example float64 3, alpha 1.38809
attr alpha FLOAT 1.3880945
in X float64 [3] -0.99 0.02 0.48
out Out float64 [3] -0.8723109667728215 0.02 0.48

example float64 scalar
in X float64 [] 0.886
out Out float64 [] 0.886
)")

HEDDLE_EXAMPLES(elu_grad, R"(
example float64 5, alpha 1.02738
attr alpha FLOAT 1.0273787
in Out float64 [5] 0.07 1.28 -0.7020728126890898 0.67 -0.4286755490034878
in Out@GRAD float64 [5] -0.5 -0.9 0.2 -0.7 0.4
in X float64 [5] 0.07 1.28 -1.15 0.67 -0.54
out X@GRAD float64 [5] -0.5 -0.9 0.06506117312654972 -0.7 0.23948125172734025

example float64 scalar
in Out float64 [] 0.886
in Out@GRAD float64 [] -0.6
in X float64 [] 0.886
out X@GRAD float64 [] -0.6

example float64 4x3, alpha -0.2
attr alpha FLOAT -0.2
in Out float64 [4, 3] 0.15962069877960264 1.15 0.09867660299727804 0.13603619766383648 0.23
  0.041093280111670794 0.18390808139053744 0.69 1.61 2.07 2.52 0.17450920862142566
in Out@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
in X float64 [4, 3] -1.6 1.15 -0.68 -1.14 0.23 -0.23 -2.52 0.69 1.61 2.07 2.52 -2.06
out X@GRAD float64 [4, 3] -0.00403793042006296 -0.5 -0.020264679996590842 0.0511710442531166 0.9 -0
  -0.01287353727175584 -0.8 -0.8 -1 0.6 0.02549079435880658

example float32 5, alpha 1.02738
attr alpha FLOAT 1.0273787
in Out float32 [5] 0.07 1.28 -0.7020728 0.67 -0.42867556
in Out@GRAD float32 [5] -0.5 -0.9 0.2 -0.7 0.4
in X float32 [5] 0.07 1.28 -1.15 0.67 -0.54
out X@GRAD float32 [5] -0.5 -0.9 0.065061174 -0.7 0.23948126
)")

HEDDLE_EXAMPLES(elu_grad_grad, R"(
example float64 4x3
in X float64 [4, 3] -1.6 1.61 1.15 -0.23 -2.06 -0.68 0.23 2.52 -2.52 2.07 0.69 -1.14
in grad_out float64 [4, 3] 0.87 1.47 0.26 1.17 -0.65 -0.34 -0.04 2.68 2.38 0.56 2.07 1.77
in grad_x@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out X@GRAD float64 [4, 3] 0.01756499706553502 -0 0 -0.7436834519431205 -0.07456057238847015 -0 -0 -0
  -0.15319509125110972 -0 0 -0.566079668614858
out grad_out@GRAD float64 [4, 3] 0.020189651799465542 -0.5 0.2 -0.6356268820026671
  0.11470857290533867 0 0.8 -0.8 -0.06436768539962594 -1 0.6 -0.31981902181630395

example float64 2x2x2x2, alpha 0.2
attr alpha FLOAT 0.2
in X float64 [2, 2, 2, 2] -0.76 0.75 -0.41 -0.18 0.87 -0.65 -0.06 -0.88 -0.3 0.28 0.05 0.17 -0.53
  0.52 0.63 0.4
in grad_out float64 [2, 2, 2, 2] 0.707 0.593 0.079 0.479 0.65 0.821 0.936 0.878 0.422 0.25 0.764
  0.365 0.136 0.193 0.536 0.308
in grad_x@GRAD float64 [2, 2, 2, 2] 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0
  -0.3
out X@GRAD float64 [2, 2, 2, 2] 0.052902427011668515 0 -0.009437106697562307 -0.016003777489114836 0
  -0.060003942475039575 -0.15866849098261895 0.029134352150649946 0.05002004700578636 -0 -0 0
  0.009606033248291804 -0 -0 -0
out grad_out@GRAD float64 [2, 2, 2, 2] 0.07482662943658913 0 -0.11945704680458617
  -0.03341080895431072 0.4 -0.07308640983561461 -0.1695176185711741 0.03318263342898627
  0.11853091707532314 -0.7 -1 0.2 0.07063259741391033 -0.6 -0 -0.3

example float32 4x3
in X float32 [4, 3] -1.6 1.61 1.15 -0.23 -2.06 -0.68 0.23 2.52 -2.52 2.07 0.69 -1.14
in grad_out float32 [4, 3] 0.87 1.47 0.26 1.17 -0.65 -0.34 -0.04 2.68 2.38 0.56 2.07 1.77
in grad_x@GRAD float32 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out X@GRAD float32 [4, 3] 0.017564999 -0 0 -0.74368346 -0.074560575 -0 -0 -0 -0.15319511 -0 0
  -0.5660797
out grad_out@GRAD float32 [4, 3] 0.020189652 -0.5 0.2 -0.6356269 0.11470858 0 0.8 -0.8 -0.06436769
  -1 0.6 -0.31981903
)")

HEDDLE_EXAMPLES(celu, R"(
example float32 4x3, alpha 1.5
attr alpha FLOAT 1.5
in X float32 [4, 3] 0.23 1.15 -1.14 -0.68 2.52 -2.52 -2.06 -0.23 1.61 0.69 -1.6 2.07
out Out float32 [4, 3] 0.23 1.15 -0.7985003 -0.54674065 2.52 -1.2204391 -1.120108 -0.21323436 1.61
  0.69 -0.98376936 2.07

example float64 scalar, alpha 1.5
attr alpha FLOAT 1.5
in X float64 [] 0.886
out Out float64 [] 0.886

example float32 1x3x3x4, alpha 1.43193
attr alpha FLOAT 1.4319259
in X float32 [1, 3, 3, 4] 0.73 -1.06 -0.43 -1.28 1.05 0.94 -0.75 -0.22 -0.64 -0.33 1.89 1.47 -1.7
  0.31 0.1 1.36 0.52 -0.11 -1.49 0.62 -1.8 -0.54 0.84 -0.85 1.79 1.57 -1.17 -1.59 -0.01 0.2 1.15
  1.68 0.41 -0.96 -1.38 1.26
out Out float32 [1, 3, 3, 4] 0.73 -0.74891293 -0.37144184 -0.8461867 1.05 0.94 -0.58382 -0.203933
  -0.516101 -0.29473457 1.89 1.47 -0.9950875 0.31 0.1 1.36 0.52 -0.105881006 -0.9260866 0.62
  -1.0245537 -0.4498574 0.84 -0.64102757 1.79 1.57 -0.799417 -0.96020716 -0.009965144 0.2 1.15 1.68
  0.41 -0.699509 -0.8856967 1.26
)")

HEDDLE_EXAMPLES(celu_grad, R"(
example float64 scalar, alpha 1.5
attr alpha FLOAT 1.5
in Out@GRAD float64 [] -0.2
in X float64 [] 0.886
out X@GRAD float64 [] -0.2

example float64 1x3x3x4, alpha 1.43193
attr alpha FLOAT 1.4319259
in Out@GRAD float64 [1, 3, 3, 4] 0.6 -0.1 0.3 0.8 0.3 0.8 0.4 0.3 -0.8 -0.9 -0.6 -0.5 -0.7 0.7 -0.4
  0.6 -0.5 -0.1 -0.7 0.8 0.7 0.7 0.4 -0.3 -0.6 -0.3 0.7 0 -0.7 -0.7 1 0.9 -0.9 -0.7 0.6 0.4
in X float64 [1, 3, 3, 4] -0.33 1.68 -0.75 -1.7 -0.11 -0.85 -0.54 1.26 -0.64 -1.28 1.05 -0.43 -1.17
  0.1 0.41 0.62 0.52 0.84 0.2 1.79 1.15 -0.96 0.94 1.89 -1.49 -1.06 0.73 -1.59 1.47 -0.01 0.31 1.36
  -0.22 -1.8 -1.38 1.57
out X@GRAD float64 [1, 3, 3, 4] 0.47650146681868444 -0.1 0.17768500580978752 0.2440564254672772
  0.2778170647779893 0.4418655229522007 0.274335019678981 0.3 -0.5116604509569063
  -0.36815121150950336 -0.6 -0.3702999038659789 -0.30920328605754976 0.7 -0.4 0.6 -0.5 -0.1 -0.7 0.8
  0.7 0.35804353262175065 0.4 -0.3 -0.2119547931900302 -0.14309671092079332 0.7 0 -0.7
  -0.6951285089339044 1 0.9 -0.7718232148185751 -0.19914476877976864 0.22887880558317245 0.4

example float32 scalar, alpha 1.5
attr alpha FLOAT 1.5
in Out@GRAD float32 [] -0.2
in X float32 [] 0.886
out X@GRAD float32 [] -0.2
)")

HEDDLE_EXAMPLES(celu_grad_grad, R"(
example float64 scalar, alpha 1.5
attr alpha FLOAT 1.5
in X float64 [] 0.886
in grad_out float64 [] 0.886
in grad_x@GRAD float64 [] -0.6
out X@GRAD float64 [] -0
out grad_out@GRAD float64 [] -0.6

example float64 4x3, alpha 1.5
attr alpha FLOAT 1.5
in X float64 [4, 3] 0.23 1.15 -1.14 -0.68 2.52 -2.52 -2.06 -0.23 1.61 0.69 -1.6 2.07
in grad_out float64 [4, 3] 1.67 1.34 1.01 0.02 0.68 2.32 2.65 -0.96 0.35 -0.64 1.99 -0.31
in grad_x@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out X@GRAD float64 [4, 3] 0 -0 0.06297907883733446 -0.006778733470886639 0 0 0.3579427030425448
  0.4392159878345558 -0 0 0.27394641434486827 0
out grad_out@GRAD float64 [4, 3] 0.1 -0.5 0.09353328540198186 -0.508405010316498 0.9 0
  0.2026090771938933 -0.6862749809914934 -0.8 -1 0.20649227211924745 -1

example float64 2x2x2x2, alpha 0.2
attr alpha FLOAT 0.2
in X float64 [2, 2, 2, 2] 0.05 0.63 -0.41 0.17 -0.88 -0.18 -0.65 0.52 0.87 -0.76 0.28 -0.07 0.4
  -0.53 -0.3 0.75
in grad_out float64 [2, 2, 2, 2] 0.343 0.117 0.739 0.908 0.795 0.23 0.852 0.626 0.513 0.569 0.061
  0.4 0.287 0.456 0.174 0.682
in grad_x@GRAD float64 [2, 2, 2, 2] 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0
  -0.3
out X@GRAD float64 [2, 2, 2, 2] 0 0 -0.4281079285795133 -0 0.019520971434888273 -0.3272885756034843
  -0.14866031781104755 0 0 -0.04455139401038271 -0 0.281875233157311 0 -0.0966508618430142 -0 -0
out grad_out@GRAD float64 [2, 2, 2, 2] 0.8 0 -0.11586141676828647 -0.2 0.0049109362832134365
  -0.28459876563518616 -0.03489678873855843 0.4 0.8 -0.015659541186028195 -1 0.14093761867878962 0.6
  -0.04239072951018608 -0 -0.3

example float32 scalar, alpha 1.5
attr alpha FLOAT 1.5
in X float32 [] 0.886
in grad_out float32 [] 0.886
in grad_x@GRAD float32 [] -0.6
out X@GRAD float32 [] -0
out grad_out@GRAD float32 [] -0.6
)")

HEDDLE_EXAMPLES(selu, R"(
example float64 3x3x1x3, alpha 1.67326
attr alpha FLOAT 1.6732632
in X float64 [3, 3, 1, 3] -0.29 -0.56 -1.82 1.25 -0.43 -0.01 0.41 0.83 -0.98 -1.4 -0.15 -1.12 -1.68
  1.66 -0.7 -1.26 0.27 0.55 -1.54 0.97 0.13 1.52 1.11 -0.84 1.39 0.69 1.8
out Out float64 [3, 3, 1, 3] -0.4425776572908509 -0.7538570645652146 -1.473241979535436
  1.3133762776851654 -0.6144397321197712 -0.017493380781592082 0.4307874190807342 0.8720818483829498
  -1.0982651487771005 -1.324557385227116 -0.24488921559790378 -1.1844670526913263 -1.430435380892792
  1.7441636967658996 -0.8850530483437982 -1.2594073877662153 0.28368927597999577 0.5778855621814728
  -1.3811960720559615 1.0191799914836883 0.1365911328792572 1.5970655536651612 1.166278134584427
  -0.9991093572929578 1.4604744207859037 0.7249837052822112 1.8912618398666383

example float32 3x3x1x3, alpha 1.67326
attr alpha FLOAT 1.6732632
in X float32 [3, 3, 1, 3] -0.29 -0.56 -1.82 1.25 -0.43 -0.01 0.41 0.83 -0.98 -1.4 -0.15 -1.12 -1.68
  1.66 -0.7 -1.26 0.27 0.55 -1.54 0.97 0.13 1.52 1.11 -0.84 1.39 0.69 1.8
out Out float32 [3, 3, 1, 3] -0.4425776 -0.753857 -1.4732419 1.3133763 -0.61443967 -0.01749338
  0.4307874 0.8720818 -1.0982652 -1.3245574 -0.24488916 -1.1844671 -1.4304354 1.7441636 -0.88505304
  -1.2594074 0.2836893 0.57788557 -1.381196 1.01918 0.13659112 1.5970656 1.1662781 -0.9991093
  1.4604744 0.7249837 1.8912618
)")

HEDDLE_EXAMPLES(selu_grad, R"(
example float64 3x3x1x3, alpha 1.67326
attr alpha FLOAT 1.6732632
in Out float64 [3, 3, 1, 3] -1.324557385227116 1.166278134584427 1.5970655536651612
  1.3133762776851654 -1.1844670526913263 0.4307874190807342 -1.0982651487771005 -0.24488921559790378
  1.8912618398666383 -1.3811960720559615 -0.4425776572908509 0.5778855621814728 0.7249837052822112
  0.1365911328792572 -0.6144397321197712 0.28368927597999577 1.0191799914836883 -1.2594073877662153
  -0.7538570645652146 -0.8850530483437982 -0.017493380781592082 1.7441636967658996
  -1.430435380892792 -1.473241979535436 -0.9991093572929578 1.4604744207859037 0.8720818483829498
in Out@GRAD float64 [3, 3, 1, 3] -0.2 -0.3 0.9 -0.9 -1 0.6 -0.9 -0 -0.3 1 -0.6 0.8 -0.1 0.6 -1 -0.2
  -0.9 -0.4 1 0.5 0.6 0.2 0.9 1 0.6 -0.6 -0.5
out X@GRAD float64 [3, 3, 1, 3] -0.08670838646470864 -0.31521030664443966 0.9456309199333192
  -0.9456309199333192 -0.5736322648593328 0.6304206132888793 -0.5938507518962028 -0
  -0.31521030664443966 0.37690324549469767 -0.789312996155885 0.8405608177185059
  -0.10507010221481324 0.6304206132888793 -1.143659585430888 -0.21014020442962647
  -0.9456309199333192 -0.19947677191377755 1.0042422529854447 0.4365231346034305 1.0443635620614402
  0.21014020442962647 0.2948975429920804 0.2848573380152233 0.4553939761546208 -0.6304206132888793
  -0.5253505110740662

example float32 3x3x1x3, alpha 1.67326
attr alpha FLOAT 1.6732632
in Out float32 [3, 3, 1, 3] -1.3245574 1.1662781 1.5970656 1.3133763 -1.1844671 0.4307874 -1.0982652
  -0.24488921 1.8912618 -1.381196 -0.44257766 0.57788557 0.7249837 0.13659114 -0.6144397 0.2836893
  1.0191799 -1.2594074 -0.7538571 -0.88505304 -0.01749338 1.7441638 -1.4304354 -1.4732419 -0.9991093
  1.4604744 0.8720819
in Out@GRAD float32 [3, 3, 1, 3] -0.2 -0.3 0.9 -0.9 -1 0.6 -0.9 -0 -0.3 1 -0.6 0.8 -0.1 0.6 -1 -0.2
  -0.9 -0.4 1 0.5 0.6 0.2 0.9 1 0.6 -0.6 -0.5
out X@GRAD float32 [3, 3, 1, 3] -0.08670838 -0.3152103 0.9456309 -0.9456309 -0.57363224 0.6304206
  -0.59385073 -0 -0.3152103 0.3769033 -0.7893131 0.84056085 -0.10507011 0.6304206 -1.1436596
  -0.21014021 -0.9456309 -0.19947676 1.0042422 0.43652314 1.0443636 0.21014021 0.2948975 0.2848574
  0.455394 -0.6304206 -0.5253505
)")

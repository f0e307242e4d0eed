// lgamma, digamma, polygamma.
#include <cmath>
#include <numbers>

#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double LogGamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);  // std::lgamma writes a global
}

double Digamma(double x) {
  if (x <= 0.0) {
    if (x == std::floor(x)) return kNan;  // a pole
    return Digamma(1.0 - x) - std::numbers::pi / std::tan(std::numbers::pi * x);
  }
  double shift = 0.0;
  for (; x < 10.0; x += 1.0) shift -= 1.0 / x;
  const double z = 1.0 / (x * x);
  const double series =
      z * (1.0 / 12 - z * (1.0 / 120 -
                           z * (1.0 / 252 -
                                z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return shift + std::log(x) - 0.5 / x - series;
}

// Hurwitz zeta for s > 1 by Euler and Maclaurin's formula.
double Zeta(double s, double q) {
  if (q <= 0.0 && q == std::floor(q)) return HUGE_VAL;
  double sum = 0.0;
  for (; q < 12.0; q += 1.0) sum += std::pow(q, -s);
  // Bernoulli numbers B2k / (2k)!
  constexpr double kTerms[] = {1.0 / 12,
                               -1.0 / 720,
                               1.0 / 30240,
                               -1.0 / 1209600,
                               1.0 / 47900160,
                               -691.0 / 1307674368000.0,
                               1.0 / 74724249600.0,
                               -3617.0 / 10670622842880000.0};
  double power = std::pow(q, -s);
  sum += q * power / (s - 1.0) + 0.5 * power;
  double rising = s;
  power /= q;
  for (int k = 0; k < 8; ++k) {
    sum += kTerms[k] * rising * power;
    rising *= (s + 2 * k + 1) * (s + 2 * k + 2);
    power /= q * q;
  }
  return sum;
}

double Polygamma(int64_t n, double x) {
  if (n == 0) return Digamma(x);
  const double order = static_cast<double>(n) + 1.0;
  const double value = std::exp(LogGamma(order)) * Zeta(order, x);
  return n % 2 == 0 ? -value : value;
}

struct Lgamma : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return static_cast<T>(LogGamma(x));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * static_cast<T>(Digamma(x));
  }
};

struct DigammaOp : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return static_cast<T>(Digamma(x));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * static_cast<T>(Polygamma(1, x));
  }
};

struct PolygammaOp : SlowUnaryOp {
  static constexpr Key kIns[] = {"x"};
  static constexpr Key kOuts[] = {"out"};
  explicit PolygammaOp(const KernelContext& ctx) : n(ctx.Int("n")) {}
  static void Declare(OpDef& op) { op.Attr("n", 0); }
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(Polygamma(n, x));
  }
  int64_t n;
};

struct PolygammaGrad : SlowUnaryOp {
  static constexpr Key kIns[] = {"x", "out@GRAD"};
  static constexpr Key kOuts[] = {"x@GRAD"};
  explicit PolygammaGrad(const KernelContext& ctx) : n(ctx.Int("n")) {}
  static void Declare(OpDef& op) { op.Attr("n", 0); }
  template <typename T>
  T operator()(T x, T dy) const {
    return dy * static_cast<T>(Polygamma(n + 1, x));
  }
  int64_t n;
};

template <typename M>
Status PolygammaShape(ShapeContext& ctx) {
  if (ctx.Int("n") < 0) return InvalidArgument("attribute n must not be negative: ", ctx.Int("n"));
  return MapShape<M>(ctx);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(lgamma) { DefineUnary<Lgamma>(op, "Logarithm of |gamma(x)|."); }
HEDDLE_OP(lgamma_grad) { DefineUnaryGrad<Lgamma>(op); }
HEDDLE_OP(digamma) { DefineUnary<DigammaOp>(op, "Derivative of lgamma."); }
HEDDLE_OP(digamma_grad) { DefineUnaryGrad<DigammaOp>(op); }
HEDDLE_OP(polygamma) {
  DefineMap<PolygammaOp>(op).Doc("The n-th derivative of digamma.");
  op.InferShape(PolygammaShape<PolygammaOp>);
}
HEDDLE_OP(polygamma_grad) {
  DefineMap<PolygammaGrad>(op).InferShape(PolygammaShape<PolygammaGrad>);
}

HEDDLE_EXAMPLES(lgamma, R"(
example float64 4x2
in X float64 [4, 2] 3.24 4.28 4.02 2.98 3.76 4.54 2.72 3.5
out Out float64 [4, 2] 0.9256500333098102 2.154316416394247 1.8169384807663007 0.6747706869530022
  1.4986562040709484 2.509489734588654 0.4508453979096208 1.2009736023470743

example float32 4x3
in X float32 [4, 3] 1.393 1.091 1.317 1.845 1.242 1.167 1.694 1.769 1.543 1.92 1.619 1.468
out Out float32 [4, 3] -0.119158044 -0.046000354 -0.11088814 -0.057520896 -0.09641378 -0.07513669
  -0.097044684 -0.079561844 -0.11835973 -0.031723622 -0.11004272 -0.12146671

example float64 2x3x2
in X float64 [2, 3, 2] 4.39 0.74 2.73 4.06 3.73 1.41 2.07 2.4 3.4 1.74 1.08 3.07
out Out float64 [2, 3, 2] 2.3024793991986536 0.21426754630508069 0.45892441336267475
  1.867634553210863 1.4632260225595433 -0.1201756558890367 0.03115237214425216 0.21685932244884157
  1.0923280598027414 -0.08683754647884093 -0.04110817016999407 0.7587009794215298
)")

HEDDLE_EXAMPLES(lgamma_grad, R"(
example float64 4x3
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] 1.543 1.694 1.317 1.393 1.92 1.091 1.167 1.468 1.769 1.619 1.242 1.845
out X@GRAD float64 [4, 3] -0.04556306192480575 -0.12226654329674574 0.10505587124619499
  -0.03429318945745852 -0.1849263622032009 -0.13101917232226987 -0.06633761788817819
  -0.0012288218394792773 0.18332291142772944 -0 0.11853744656914 0.22234490921792285

example float64 2x3x2
in Out@GRAD float64 [2, 3, 2] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [2, 3, 2] 1.41 3.4 2.07 1.74 2.73 2.4 0.74 3.07 3.73 4.06 4.39 1.08
out X@GRAD float64 [2, 3, 2] 0.03070808024273832 -0.641740701820359 -0.3268769135693478
  0.11990160306754816 -0.4050558206907988 0.1958703509101795 -0.2223096290432511 -0.1900117613648793
  0.8234884053773746 -0 -0.6805659403404202 -0.3169595366011991

example float32 4x3
in Out@GRAD float32 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float32 [4, 3] 1.543 1.694 1.317 1.393 1.92 1.091 1.167 1.468 1.769 1.619 1.242 1.845
out X@GRAD float32 [4, 3] -0.045562938 -0.12226654 0.10505597 -0.034293175 -0.18492615 -0.13101926
  -0.06633764 -0.0012289047 0.18332279 -0 0.118537426 0.22234504
)")

HEDDLE_EXAMPLES(digamma, R"(
example float64 2x5
in X float64 [2, 5] 9.73 10.370000000000001 14.23 13.580000000000002 12.3 11.120000000000001 7.91
  8.55 10.48 12.4
out Out float64 [2, 5] 2.2229471361337265 2.2899268041822554 2.6198040433643466 2.5713276393439712
  2.4683984003011386 2.3631078816734994 2.0035868872622715 2.086313348263812 2.3010006974902324
  2.4768322731896193

example float32 4x3
in X float32 [4, 3] 1.72 3.99 3.67 2.7 1.4 2.37 3.02 4.64 1.08 4.32 3.34 2.05
out Out float32 [4, 3] 0.22429276 1.2532752 1.1578094 0.7967831 -0.061384916 0.63732827 0.93065226
  1.4231026 -0.45279956 1.3430728 1.0488647 0.45453608

example float32 3x4x1x1
in X float32 [3, 4, 1, 1] 4.64 0.95 2.96 4.3 3.97 1.62 2.29 2.63 3.63 1.96 1.28 3.3
out Out float32 [3, 4, 1, 1] 1.4231026 -0.6626096 0.9068625 1.3378528 1.2475667 0.14307714 0.5945997
  0.76498556 1.1452137 0.39665842 -0.19211864 1.0348225

example float64 1x2x2
in X float64 [1, 2, 2] 0.196 0.0629 0.123 0.0891
out Out float64 [1, 2, 2] -5.396162080751896 -16.376502277741306 -8.521353743208977
  -11.662834021028484
)")

HEDDLE_EXAMPLES(digamma_grad, R"(
example float64 scalar
in Out@GRAD float64 [] -0.2
in X float64 [] 2.39
out X@GRAD float64 [] -0.10355362986644918

example float64 3x4x1x1
in Out@GRAD float64 [3, 4, 1, 1] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [3, 4, 1, 1] 2.96 3.63 1.96 2.29 4.64 0.95 1.28 2.63 3.97 3.3 1.62 4.3
out X@GRAD float64 [3, 4, 1, 1] -0.24071714787245574 -0.1901168464450668 -0.4630524159580982
  0.2727169256268655 -0.12019722338123802 0.5321428333128829 0.23174245979911037
  -0.09228696936372666 0.2003711550886875 -0 -0.4222896227729087 0.18317192410049715

example float32 scalar
in Out@GRAD float32 [] -0.2
in X float32 [] 2.39
out X@GRAD float32 [] -0.103553616
)")

HEDDLE_EXAMPLES(polygamma, R"(
example float32 6, n 1
attr n INT 1
in x float32 [6] 3.5 5.75 4.25 6.5 2.75 5
out out float32 [6] 0.3303577 0.18990742 0.26512372 0.16628453 0.4375712 0.22132295

example float64 6, n 2
attr n INT 2
in x float64 [6] 2.75 5.75 3.5 5 6.5 4.25
out out float64 [6] -0.18871463303130123 -0.03595880011001999 -0.1082040516417274
  -0.04878973224511449 -0.02758791070687679 -0.06989568177725805

example float64 2x2x6, n 2
attr n INT 2
in x float64 [2, 2, 6] 5.9 5.5 5 1.1 3.3 6.4 4.6 0.6 1.5 -0.7 3.7 -1.6 -0.2 2 0.2 -1.1 6.8 8.1 7.2
  2.4 8.6 4.2 2.8 7.7
out out float64 [2, 2, 6] -0.03400521206445041 -0.03960894752130204 -0.04878973224511449
  -1.8614573783440063 -0.12375118526494273 -0.02852441444146066 -0.058632552959232656
  -9.96283153714346 -0.8287966442343201 -69.44163279863852 -0.09539530872855405 -22.491588114319118
  245.5698842915784 -0.4041138063191886 -251.4780361144359 1998.3008325580035 -0.025038833188493453
  -0.017238826956111907 -0.02215418768023357 -0.260265649817424 -0.015184010469488354
  -0.0717648505531312 -0.18093018030092126 -0.019198121435321965
)")

HEDDLE_EXAMPLES(polygamma_grad, R"(
example n 0
attr n INT 0
in out@GRAD float64 [4] 0.9 0.7 0.2 0.8
in x float64 [4] 0.5 1 2.25 4
out x@GRAD float64 [4] 4.441321980490212 1.1514538467937585 0.11146583090142215 0.2270583645896922

example n 1
attr n INT 1
in out@GRAD float64 [4] 0.9 0.7 0.2 0.8
in x float64 [4] 0.5 1 2.25 4
out x@GRAD float64 [4] -15.145916979810885 -1.6828796644234316 -0.06074798750738408
  -0.0640317857960916

example n 2
attr n INT 2
in out@GRAD float64 [4] 0.9 0.7 0.2 0.8
in x float64 [4] 0.5 1 2.25 4
out x@GRAD float64 [4] 87.66818193060217 4.54575758158678 0.06490880183767922 0.035892262554204066
)")

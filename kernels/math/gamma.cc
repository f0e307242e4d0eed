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

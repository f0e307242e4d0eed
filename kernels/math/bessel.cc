// Modified Bessel functions of the first kind: i0, i1, and i0e, i1e, which are scaled by exp(-|x|).
#include <cmath>

#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

// exp(-a) * I_nu(a) for a >= 0 and nu 0 or 1. The power series has positive terms only, the
// asymptotic one shrinks until about term 2a: together they reach double precision everywhere.
double ScaledBessel(int nu, double a) {
  if (a < 20.0) {
    const double z = 0.25 * a * a;
    double term = nu == 0 ? 1.0 : 0.5 * a;
    double sum = term;
    for (int k = 1; term > sum * 1e-17; ++k) {
      term *= z / (static_cast<double>(k) * (k + nu));
      sum += term;
    }
    return sum * std::exp(-a);
  }
  if (std::isinf(a)) return 0.0;
  const double mu = 4.0 * nu * nu;
  double term = 1.0, sum = 1.0;
  for (int k = 1; k < 40 && std::fabs(term) > 1e-17; ++k) {
    const double odd = 2 * k - 1;
    term *= (odd * odd - mu) / (8.0 * k * a);
    sum += term;
  }
  return sum / std::sqrt(2.0 * 3.14159265358979323846 * a);  // NaN stays NaN
}

double I0e(double x) { return ScaledBessel(0, std::fabs(x)); }
double I1e(double x) { return std::copysign(ScaledBessel(1, std::fabs(x)), x); }
double I0(double x) {
  const double a = std::fabs(x);
  return a < 20.0 ? I0e(a) * std::exp(a) : I0e(a) * std::exp(0.5 * a) * std::exp(0.5 * a);
}
double I1(double x) {
  const double a = std::fabs(x);
  const double i = a < 20.0 ? I1e(a) * std::exp(a) : I1e(a) * std::exp(0.5 * a) * std::exp(0.5 * a);
  return std::copysign(i, x);
}

// Derivatives; (x, y, dy) as far as the gradient operators have them.
double I0Slope(double x, double) { return I1(x); }
double I0eSlope(double x, double y) { return I1e(x) - ((x > 0) - (x < 0)) * y; }
double I1Slope(double x, double y) { return std::fabs(x) < 1e-15 ? 0.5 : I0(x) - y / x; }
double I1eSlope(double x, double y) {
  return std::fabs(x) < 1e-15 ? 0.5 : I0e(x) - y * (std::copysign(1.0, x) + 1.0 / x);
}

template <double (*kFn)(double)>
struct Bessel : SlowUnaryOp {
  static constexpr Key kIns[] = {"x"};
  static constexpr Key kOuts[] = {"out"};
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(kFn(x));
  }
};

struct I0Grad : SlowUnaryOp {
  static constexpr Key kIns[] = {"x", "out@GRAD"};
  static constexpr Key kOuts[] = {"x@GRAD"};
  template <typename T>
  T operator()(T x, T dy) const {
    return dy * static_cast<T>(I0Slope(x, 0));
  }
};

template <double (*kSlope)(double, double)>
struct BesselGrad : SlowUnaryOp {
  static constexpr Key kIns[] = {"x", "out", "out@GRAD"};
  static constexpr Key kOuts[] = {"x@GRAD"};
  template <typename T>
  T operator()(T x, T y, T dy) const {
    return dy * static_cast<T>(kSlope(x, y));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(i0) { DefineMap<Bessel<I0>>(op).Doc("Bessel function I0."); }
HEDDLE_OP(i0_grad) { DefineMap<I0Grad>(op); }
HEDDLE_OP(i0e) { DefineMap<Bessel<I0e>>(op).Doc("exp(-|x|) * I0(x)"); }
HEDDLE_OP(i0e_grad) { DefineMap<BesselGrad<I0eSlope>>(op); }
HEDDLE_OP(i1) { DefineMap<Bessel<I1>>(op).Doc("Bessel function I1."); }
HEDDLE_OP(i1_grad) { DefineMap<BesselGrad<I1Slope>>(op); }
HEDDLE_OP(i1e) { DefineMap<Bessel<I1e>>(op).Doc("exp(-|x|) * I1(x)"); }
HEDDLE_OP(i1e_grad) { DefineMap<BesselGrad<I1eSlope>>(op); }

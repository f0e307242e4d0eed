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

HEDDLE_EXAMPLES(i0, R"(
example float32 4
in x float32 [4] 9 12 12 12
out out float32 [4] 1093.5884 18948.926 18948.926 18948.926

example float64 4
in x float64 [4] 1.4 4.8 11.5 8.2
out out float64 [4] 1.5533950997312167 22.793677993105792 11746.141518920067 515.5926772801739
)")

HEDDLE_EXAMPLES(i0_grad, R"(
example float32
in out@GRAD float64 [7] -0.4 0.6 -0.3 -0.6 -0.8 0.9 0.7
in x float64 [7] -3.5 -1 -0.25 0 0.5 2 9
out x@GRAD float64 [7] 2.4823339689033457 -0.3390954623954911 0.037793732683640356 -0
  -0.2063154443127171 1.4315731691735967 721.6403057618695
)")

HEDDLE_EXAMPLES(i0e, R"(
example float32
in x float32 [7] -3.5 -1 -0.25 0 0.5 2 9
out out float32 [7] 0.22280246 0.46575963 0.79101723 0.99999994 0.6450353 0.3085083 0.13495953

example float64
in x float64 [5] -3.5 -1 0.5 2 9
out out float64 [5] 0.22280243801077917 0.46575960759364043 0.64503527044915 0.308508322553671
  0.134959524581723
)")

HEDDLE_EXAMPLES(i0e_grad, R"(
example float32
in out float64 [7] 0.22280243801077917 0.46575960759364043 0.7910171621397195 1 0.64503527044915
  0.308508322553671 0.134959524581723
in out@GRAD float64 [7] -0.7 0.7 0.9 -0 0.5 -0.3 -0.7
in x float64 [7] -3.5 -1 -0.25 0 0.5 2 9
out x@GRAD float64 [7] -0.024781722985410443 0.18049443457075234 0.6236140800981163 0
  -0.24430723363213913 0.02797170999141999 0.005414178452082252
)")

HEDDLE_EXAMPLES(i1, R"(
example float64 4
in x float64 [4] 4.1 1.7 -0.8 6.6
out out float64 [4] 10.687741836417759 1.196346565634482 -0.43286480262064 107.30466122509512

example float32 4
in x float32 [4] 4.1 1.7 -0.8 6.6
out out float32 [4] 10.687741 1.1963466 -0.43286481 107.3047
)")

HEDDLE_EXAMPLES(i1_grad, R"(
example float32
in out float64 [7] -6.205834922258364 -0.5651591039924851 -0.12597910894546785 0 0.25789430539089636
  1.5906368546373295 1030.9147225169565
in out@GRAD float64 [7] -0.7 0.7 0.9 -0 0.5 -0.3 -0.7
in x float64 [7] -3.5 -1 -0.25 0 0.5 2 9
out x@GRAD float64 [7] -3.9235754181061626 0.4906347416316661 0.46059273489756297 -0
  0.2738473799797653 -0.44528006250522056 -685.3295919621988

example float64 4
in out float64 [4] 10.687741836417759 1.196346565634482 -0.43286480262064 107.30466122509512
in out@GRAD float64 [4] -0.8 -0.3 0.7 -0.8
in x float64 [4] 4.1 1.7 -0.8 6.6
out x@GRAD float64 [4] -7.773443051563408 -0.3480695064513609 0.4378037437158022 -80.2232338871365

example float32 4
in out float32 [4] 10.687742 1.1963465 -0.43286481 107.304665
in out@GRAD float32 [4] -0.8 -0.3 0.7 -0.8
in x float32 [4] 4.1 1.7 -0.8 6.6
out x@GRAD float32 [4] -7.7734427 -0.34806952 0.4378037 -80.223236
)")

HEDDLE_EXAMPLES(i1e, R"(
example float64 6
in x float64 [6] 0 1 3 3 4 5
out out float64 [6] 0 0.2079104153497085 0.19682671329730084 0.19682671329730084 0.1787508395024353
  0.16397226694454234

example float32 6
in x float32 [6] 0 1 3 3 4 5
out out float32 [6] 0 0.20791042 0.19682673 0.19682673 0.17875087 0.16397226
)")

HEDDLE_EXAMPLES(i1e_grad, R"(
example float32
in out float64 [7] -0.18739997660304997 -0.2079104153497085 -0.0981126286973682 0
  0.15642080318487173 0.2152692892489377 0.1272249839358912
in out@GRAD float64 [7] -0.7 0.7 0.9 -0 0.5 -0.3 -0.7
in x float64 [7] -3.5 -1 -0.25 0 0.5 2 9
out x@GRAD float64 [7] 0.012698272335199523 0.034957143825956404 0.27040861678759065 -0
  0.0878864304472674 0.004318683395920664 0.004481098076264852
)")

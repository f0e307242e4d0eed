// erf and erfinv.
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

constexpr double kTwoOverSqrtPi = 1.12837916709551257390;

struct Erf : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return fast::Erf(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy * T(kTwoOverSqrtPi) * fast::Exp(-x * x);
  }
};

// A rational start, then Halley steps on erfc, which keeps its digits where x is near 1.
double InverseErf(double x) {
  const double a = std::fabs(x);
  if (!(a < 1.0)) return a == 1.0 ? std::copysign(HUGE_VAL, x) : std::nan("");
  const double l = std::log1p(-a * a);
  const double h = 4.3307467508 + 0.5 * l;  // 2 / (pi * 0.147) + l / 2
  double y = std::sqrt(std::sqrt(h * h - l / 0.147) - h);
  if (a == 0.0) return x;
  for (int i = 0; i < 3; ++i) {
    const double error = a < 0.5 ? std::erf(y) - a : (1.0 - a) - std::erfc(y);
    const double step = error / (kTwoOverSqrtPi * std::exp(-y * y));
    y -= step / (1.0 + y * step);
  }
  return std::copysign(y, x);
}

struct Erfinv : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  template <typename T>
  T Forward(T x) const {
    return static_cast<T>(InverseErf(x));
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return dy * T(1.0 / kTwoOverSqrtPi) * std::exp(y * y);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(erf) { DefineUnary<Erf>(op, "Error function."); }
HEDDLE_OP(erf_grad) { DefineUnaryGrad<Erf>(op); }
HEDDLE_OP(erfinv) { DefineUnary<Erfinv>(op, "Inverse of erf."); }
HEDDLE_OP(erfinv_grad) { DefineUnaryGrad<Erfinv>(op); }

HEDDLE_TILE(erf) { return UnaryTile<Erf>(); }
HEDDLE_TILE(erf_grad) { return UnaryGradTile<Erf>(); }

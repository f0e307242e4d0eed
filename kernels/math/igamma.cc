// The regularised incomplete gamma functions.
#include <cmath>

#include "kernels/elementwise/binary_op.h"

namespace heddle {
namespace {

// The part of the gamma function's integral below x (lower) or above it.
double IncompleteGamma(double a, double x, bool lower) {
  constexpr double kEpsilon = 1e-16;
  if (std::isnan(a) || std::isnan(x) || a <= 0 || x < 0) return std::nan("");
  if (x == 0) return lower ? 0 : 1;
  if (std::isinf(x)) return lower ? 1 : 0;
  const double scale = std::exp(a * std::log(x) - x - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (double n = a + 1; term > sum * kEpsilon && n < a + 100000; ++n) {
      term *= x / n;
      sum += term;
    }
    const double p = std::min(1.0, sum * scale);
    return lower ? p : 1 - p;
  }
  // The continued fraction, by Lentz.
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int i = 1; i < 100000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    d = 1 / (std::abs(d) < kTiny ? kTiny : d);
    c = b + an / c;
    c = std::abs(c) < kTiny ? kTiny : c;
    h *= d * c;
    if (std::abs(d * c - 1) < kEpsilon) break;
  }
  const double q = scale * h;
  return lower ? 1 - q : q;
}

struct SlotsAx {
  static constexpr Key x() { return "A"; }
  static constexpr Key y() { return "X"; }
  static constexpr Key out() { return "Out"; }
};
template <bool kLower>
struct Gamma {
  static constexpr int64_t kGrain = kHeavyGrain / 8;
  template <typename T>
  static T Apply(T a, T x) {
    return static_cast<T>(IncompleteGamma(static_cast<double>(a), static_cast<double>(x), kLower));
  }
};
template <typename T>
struct RunGamma {
  static Status Run(KernelContext& ctx) {
    return RunBinaryOp<SlotsAx>(ctx, ctx.Bool("upper") ? BinaryLoop<Gamma<false>, T, T>::kLoops
                                                       : BinaryLoop<Gamma<true>, T, T>::kLoops);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(igamma) {
  op.Doc("the regularised incomplete gamma function of A, below X or above it");
  op.Input("A").Input("X").Output("Out").Attr("upper", false);
  op.InferShape(&InferBinary<SlotsAx>).Prepare(&PrepareBroadcast<SlotsAx>);
  op.Kernels<RunGamma, float, double>();
}

// Incomplete gamma functions, and numbers rounded to a quantised range.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/elementwise/slots.h"
#include "kernels/operands/operands.h"

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
  static constexpr Key x() { return "a"; }
  static constexpr Key y() { return "x"; }
  static constexpr Key out() { return "z"; }
};
template <bool kLower>
struct Gamma {
  static constexpr int64_t kGrain = kHeavyGrain / 8;
  template <typename T>
  static T Apply(T a, T x) {
    return static_cast<T>(IncompleteGamma(static_cast<double>(a), static_cast<double>(x), kLower));
  }
};
template <bool kLower>
void DefineGamma(OpDef& op, const char* doc) {
  op.Doc(doc).Input("a").Input("x").Output("z");
  BinaryKernels<Gamma<kLower>, SlotsAx, float, double>(op);
}

template <typename T>
struct QuantizeDequantize {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("input");
    const T* from = x.data<T>();
    T* to = ctx.Out("output").template mutable_data<T>();
    const int64_t bits = ctx.Int("num_bits");
    const bool sign = ctx.Bool("signed_input"), given = ctx.Bool("range_given");
    if (bits < 1 || bits > 62) return InvalidArgument("num_bits is ", bits, ", expected 1 to 62");
    if (ctx.Int("axis") != -1) return Unimplemented("axis is ", ctx.Int("axis"), ", expected -1");
    const std::string& mode = ctx.Str("round_mode");
    if (mode != "HALF_TO_EVEN" && mode != "HALF_UP")
      return InvalidArgument("round_mode is '", mode, "', expected HALF_TO_EVEN or HALF_UP");
    T low = 0, high = 0;
    if (given) {
      const Tensor &lo = ctx.In("input_min"), &hi = ctx.In("input_max");
      if (lo.numel() != 1 || hi.numel() != 1 || lo.dtype() != x.dtype() || hi.dtype() != x.dtype())
        return InvalidArgument("input_min and input_max are not scalars of input's dtype");
      low = *lo.data<T>();
      high = *hi.data<T>();
      if (low > high) return InvalidArgument("input_min is ", low, ", input_max ", high);
    } else if (x.numel() > 0) {
      low = *std::min_element(from, from + x.numel());
      high = *std::max_element(from, from + x.numel());
    }
    const int64_t half = int64_t{1} << (bits - 1);
    const T least = static_cast<T>(sign ? -half + (ctx.Bool("narrow_range") ? 1 : 0) : 0);
    const T most = static_cast<T>(sign ? half - 1 : 2 * half - 1);
    constexpr T kNone = std::numeric_limits<T>::max();
    const T by_low = least * low > 0 ? least / low : kNone;
    const T by_high = most * high > 0 ? most / high : kNone;
    T scale = by_high, inverse = high / most;
    if (by_low < by_high) {
      scale = by_low;
      inverse = low / least;
      high = most * inverse;
    } else {
      low = least * inverse;
    }
    for (const int64_t i : Watched(x.numel())) {
      const T v = (given ? std::max(std::min(from[i], high), low) : from[i]) * scale;
      to[i] = (mode == "HALF_UP" ? std::floor(v + T(0.5)) : std::nearbyint(v)) * inverse;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_igamma) { DefineGamma<true>(op, "lower regularised incomplete gamma function"); }
HEDDLE_OP(tf_igammac) { DefineGamma<false>(op, "upper regularised incomplete gamma function"); }
HEDDLE_OP(tf_quantize_and_dequantize_v2) {
  op.Doc("input rounded to integers of num_bits, scaled so that 0 stays").Input("input");
  op.Input("input_min", kOptional).Input("input_max", kOptional).Output("output");
  op.Attr("signed_input", true).Attr("num_bits", 8).Attr("range_given", false);
  op.Attr("round_mode", "HALF_TO_EVEN").Attr("narrow_range", false).Attr("axis", -1);
  op.InferShape([](ShapeContext& ctx) {
    ctx.SetOut("output", ctx.InShape("input"), ctx.InDType("input"));
    return Status::Ok();
  });
  op.KernelKey("input").Kernels<QuantizeDequantize, float, double>();
}

// Numbers rounded to a quantised range.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// What rounds the numbers of one range: all, or those of one index of an axis.
template <typename T>
struct RangeRounding {
  T low = 0, high = 0;       // what numbers are limited to, where the range is given
  T scale = 1, inverse = 1;  // from numbers to integers and back
};

// `least`, `most`: the integers. The side of the range that needs the greater steps sets them.
template <typename T>
RangeRounding<T> RoundingOf(T low, T high, T least, T most) {
  constexpr T kNone = std::numeric_limits<T>::max();
  const T by_low = least * low > 0 ? least / low : kNone;
  const T by_high = most * high > 0 ? most / high : kNone;
  RangeRounding<T> r{low, high, by_high, high / most};
  if (by_low < by_high) {
    r.scale = by_low;
    r.inverse = low / least;
    r.high = most * r.inverse;
  } else {
    r.low = least * r.inverse;
  }
  return r;
}

template <typename T>
struct QuantizeDequantize {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const T* from = x.data<T>();
    T* to = ctx.Out("Out").template mutable_data<T>();
    const int64_t bits = ctx.Int("num_bits"), axis = ctx.Int("axis");
    const bool sign = ctx.Bool("signed_input"), given = ctx.Bool("range_given");
    if (bits < 1 || bits > 62) return InvalidArgument("num_bits is ", bits, ", expected 1 to 62");
    const std::string& mode = ctx.Str("round_mode");
    if (mode != "HALF_TO_EVEN" && mode != "HALF_UP")
      return InvalidArgument("round_mode is '", mode, "', expected HALF_TO_EVEN or HALF_UP");
    const bool up = mode == "HALF_UP";
    if (axis < -1 || axis >= x.shape().rank())
      return OutOfRange("axis is ", axis, ", expected -1 or a dimension of ", x.shape().ToString());
    const AxisLines lines =
        axis < 0 ? AxisLines{1, 1, x.numel()} : AxisLines::Of(x.shape(), static_cast<int>(axis));
    const T *lows = nullptr, *highs = nullptr;
    if (given) {
      const Tensor &lo = ctx.In("Min"), &hi = ctx.In("Max");
      if (lo.numel() != lines.n || hi.numel() != lines.n || lo.dtype() != x.dtype() ||
          hi.dtype() != x.dtype())
        return InvalidArgument("Min and Max are not ", lines.n, " numbers of X's dtype");
      lows = lo.data<T>();
      highs = hi.data<T>();
    }
    const int64_t half = int64_t{1} << (bits - 1);
    const T least = static_cast<T>(sign ? -half + (ctx.Bool("narrow_range") ? 1 : 0) : 0);
    const T most = static_cast<T>(sign ? half - 1 : 2 * half - 1);
    for (int64_t k = 0; k < lines.n; ++k) {
      T low = 0, high = 0;
      if (given) {
        low = lows[k];
        high = highs[k];
        if (low > high) return InvalidArgument("Min is ", low, ", Max ", high);
      } else if (x.numel() > 0) {
        low = high = from[k * lines.inner];
        ForEach(lines, k, [&](int64_t i) {
          low = std::min(low, from[i]);
          high = std::max(high, from[i]);
        });
      }
      const RangeRounding<T> r = RoundingOf(low, high, least, most);
      ForEach(lines, k, [&](int64_t i) {
        const T v = (given ? std::max(std::min(from[i], r.high), r.low) : from[i]) * r.scale;
        to[i] = (up ? std::floor(v + T(0.5)) : std::nearbyint(v)) * r.inverse;
      });
    }
    return Status::Ok();
  }

 private:
  // fn(i) for the elements whose index of the axis is k.
  template <typename Fn>
  static void ForEach(const AxisLines& lines, int64_t k, Fn&& fn) {
    for (const int64_t o : Watched(lines.outer)) {
      const int64_t begin = (o * lines.n + k) * lines.inner;
      for (const auto part : Stretches(lines.inner))
        for (int64_t i = part.begin; i < part.end; ++i) fn(begin + i);
    }
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(quantize_and_dequantize) {
  op.Doc(
      "X rounded to integers of num_bits, scaled so that 0 stays: of all numbers, or of each index "
      "of axis");
  op.Input("X").Input("Min", kOptional).Input("Max", kOptional).Output("Out");
  op.Attr("signed_input", true).Attr("num_bits", 8).Attr("range_given", false);
  op.Attr("round_mode", "HALF_TO_EVEN").Attr("narrow_range", false).Attr("axis", -1);
  op.InferShape([](ShapeContext& ctx) {
    ctx.SetOut("Out", ctx.InShape("X"), ctx.InDType("X"));
    return Status::Ok();
  });
  op.KernelKey("X").Kernels<QuantizeDequantize, float, double>();
}

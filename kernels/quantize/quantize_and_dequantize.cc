// Numbers rounded to a quantised range.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

template <typename T>
struct QuantizeDequantize {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const T* from = x.data<T>();
    T* to = ctx.Out("Out").template mutable_data<T>();
    const int64_t bits = ctx.Int("num_bits");
    const bool sign = ctx.Bool("signed_input"), given = ctx.Bool("range_given");
    if (bits < 1 || bits > 62) return InvalidArgument("num_bits is ", bits, ", expected 1 to 62");
    if (ctx.Int("axis") != -1) return Unimplemented("axis is ", ctx.Int("axis"), ", expected -1");
    const std::string& mode = ctx.Str("round_mode");
    if (mode != "HALF_TO_EVEN" && mode != "HALF_UP")
      return InvalidArgument("round_mode is '", mode, "', expected HALF_TO_EVEN or HALF_UP");
    T low = 0, high = 0;
    if (given) {
      const Tensor &lo = ctx.In("Min"), &hi = ctx.In("Max");
      if (lo.numel() != 1 || hi.numel() != 1 || lo.dtype() != x.dtype() || hi.dtype() != x.dtype())
        return InvalidArgument("Min and Max are not scalars of X's dtype");
      low = *lo.data<T>();
      high = *hi.data<T>();
      if (low > high) return InvalidArgument("Min is ", low, ", Max ", high);
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

HEDDLE_OP(quantize_and_dequantize) {
  op.Doc("x rounded to integers of num_bits, scaled so that 0 stays").Input("X");
  op.Input("Min", kOptional).Input("Max", kOptional).Output("Out");
  op.Attr("signed_input", true).Attr("num_bits", 8).Attr("range_given", false);
  op.Attr("round_mode", "HALF_TO_EVEN").Attr("narrow_range", false).Attr("axis", -1);
  op.InferShape([](ShapeContext& ctx) {
    ctx.SetOut("Out", ctx.InShape("X"), ctx.InDType("X"));
    return Status::Ok();
  });
  op.KernelKey("X").Kernels<QuantizeDequantize, float, double>();
}

// Numbers rounded to the nearest of a quantised range, which is moved so that 0 is one of them; a
// range on one side of 0 gets it as its end.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

struct FakeRange {
  float low, high, step;
};
FakeRange NudgedRange(float low, float high, int64_t bits, bool narrow) {
  const auto least = narrow ? 1.0F : 0.0F;
  const auto most = static_cast<float>((int64_t{1} << bits) - 1);
  const float step = (high - low) / (most - least);
  const float zero = least - low / step;
  const float at = zero < least ? least : zero > most ? most : std::round(zero);
  return {(least - at) * step, (most - at) * step, step};
}

Status CheckAttrs(const OpContext& ctx) {
  const int64_t bits = ctx.Int("num_bits");
  if (bits >= 2 && bits <= 16) return Status::Ok();
  return InvalidArgument("num_bits is ", bits, ", expected 2 to 16");
}

// `n` elements, `step` apart.
void QuantizeInRange(const OpContext& ctx, float low, float high, const float* from, float* to,
                     int64_t n, int64_t step) {
  if (low == 0 && high == 0) {
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) to[i * step] = 0;
    return;
  }
  const FakeRange r = NudgedRange(low, high, ctx.Int("num_bits"), ctx.Bool("narrow_range"));
  const float inverse = 1 / r.step, zero = std::floor(-r.low * inverse + 0.5F);
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) {
      const float x = from[i * step];
      const float clamped = std::max(std::min(x, r.high), r.low) - r.low;
      to[i * step] = std::floor(clamped * inverse - zero + 0.5F) * r.step;
    }
}

Status FakeQuant(KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckAttrs(ctx));
  const Tensor &x = ctx.In("inputs"), &lows = ctx.In("min"), &highs = ctx.In("max");
  const int64_t channels = lows.numel() == 1 || x.rank() == 0 ? 1 : x.dim(-1);
  if (lows.numel() != channels || highs.numel() != channels || lows.dtype() != DType::kF32 ||
      highs.dtype() != DType::kF32)
    return InvalidArgument("min and max have shapes ", lows.shape().ToString(), " and ",
                           highs.shape().ToString(), ", expected one float32 of each, or ",
                           channels, ", as many as channels");
  float* to = ctx.Out("outputs").mutable_data<float>();
  for (const int64_t c : Watched(channels)) {
    const float low = lows.data<float>()[c], high = highs.data<float>()[c];
    QuantizeInRange(ctx, low, high, x.data<float>() + c, to + c, x.numel() / channels, channels);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fake_quant_with_min_max) {
  op.Doc("inputs rounded to a quantised range, one for all or one for each of the last dimension");
  op.Input("inputs").Input("min").Input("max").Output("outputs").Inplace("inputs", "outputs");
  op.Attr("num_bits", 8).Attr("narrow_range", false).KernelKey("inputs").InferShape(SameShape);
  op.Kernel(DType::kF32, FakeQuant);
}

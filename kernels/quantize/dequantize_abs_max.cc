// dequantize_abs_max: int8 values times a scale.
#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// --- from integers ---

template <typename From>
struct DequantizeAbsMax {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &scale = ctx.In("Scale");
    if (scale.numel() != 1 || scale.dtype() != DType::kF32)
      return InvalidArgument("Scale must be one float32");
    const float range = static_cast<float>(ctx.Float("max_range"));
    float* to = ctx.Alloc("Out", DType::kF32, x.shape()).mutable_data<float>();
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = scale.data<float>()[0] * static_cast<float>(x.data<From>()[i]) / range;
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(dequantize_abs_max) {
  op.Doc("Scale * X / max_range").Input("X").Input("Scale").Output("Out").Attr("max_range", 127.0);
  op.Kernels<DequantizeAbsMax, int8_t, int16_t>();
}

// quantize and dequantize: floats as 8-bit integers of one scale, as a library's int8 kernels read
// them. dequantize_log: values from a table.
#include <algorithm>
#include <cmath>

#include "kernels/base/shape_checks.h"
#include "kernels/base/visit_one_of.h"

namespace heddle {
namespace {

Status CheckScale(const OpContext& ctx) {
  if (ctx.Float("Scale") == 0) return InvalidArgument("Scale is 0");
  return Status::Ok();
}

// Values that may be negative become int8, or uint8 around Shift; others uint8.
DType QuantizedType(const OpContext& ctx) {
  if (ctx.Bool("bfloat16")) return DType::kBF16;
  return ctx.Bool("is_negative_input") && ctx.Float("Shift") == 0 ? DType::kI8 : DType::kU8;
}

Status QuantizeShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckScale(ctx));
  ctx.SetOut("Output", ctx.InShape("Input"), QuantizedType(ctx));
  ctx.ShareLoD("Input", "Output");
  return Status::Ok();
}

Status Quantize(KernelContext& ctx) {
  const Tensor& x = ctx.In("Input");
  Tensor& out = ctx.Out("Output");
  const auto scale = static_cast<float>(ctx.Float("Scale"));
  const auto shift = static_cast<float>(ctx.Float("Shift"));
  VisitOneOf<int8_t, uint8_t, bfloat16>("Output", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.mutable_data<T>();
    ForEachIndex(ctx, x.numel(), [=, from = x.data<float>()](int64_t i) {
      if constexpr (std::is_same_v<T, bfloat16>) {
        to[i] = static_cast<T>(from[i] * scale);
      } else {
        constexpr float kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
        to[i] = static_cast<T>(std::clamp(std::nearbyint(from[i] * scale + shift), kLow, kHigh));
      }
    });
  });
  return Status::Ok();
}

Status DequantizeShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckScale(ctx));
  ctx.SetOut("Output", ctx.InShape("Input"), DType::kF32);
  ctx.ShareLoD("Input", "Output");
  return Status::Ok();
}

template <typename T>
struct Dequantize {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Input");
    const auto scale = static_cast<float>(ctx.Float("Scale"));
    const auto shift = static_cast<float>(ctx.Float("Shift"));
    float* out = ctx.Out("Output").template mutable_data<float>();
    ForEachIndex(ctx, x.numel(), [=, from = x.data<T>()](int64_t i) {
      out[i] = (static_cast<float>(from[i]) - shift) / scale;
    });
    return Status::Ok();
  }
};

Status LogShape(ShapeContext& ctx) {
  const Shape& table = ctx.InShape("Dict");
  if (table.is_static() && table.numel() < 128)
    return InvalidArgument("Dict has ", table.numel(), " values, expected 128");
  ctx.SetOut("Out", ctx.InShape("X"), DType::kF32);
  return Status::Ok();
}

// Negative codes are the negated values of the codes 128 above.
Status DequantizeLog(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  float* out = ctx.Out("Out").mutable_data<float>();
  ForEachIndex(ctx, x.numel(),
               [=, from = x.data<int8_t>(), table = ctx.In("Dict").data<float>()](int64_t i) {
                 out[i] = from[i] < 0 ? -table[from[i] + 128] : table[from[i]];
               });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(quantize) {
  op.Doc("round(Input Scale + Shift) as 8-bit integers").Input("Input").Output("Output");
  op.Attr("is_negative_input", false).Attr("Scale", 1.0).Attr("Shift", 0.0);
  op.Attr("output_format", "NHWC").Attr("bfloat16", false);
  op.InferShape(QuantizeShape).Kernel(DType::kF32, Quantize);
}
HEDDLE_OP(dequantize) {
  op.Doc("(Input - Shift) / Scale as float32").Input("Input").Output("Output");
  op.Attr("Scale", 1.0).Attr("Shift", 0.0).InferShape(DequantizeShape);
  op.Kernels<Dequantize, int8_t, uint8_t, bfloat16>();
}
HEDDLE_OP(dequantize_log) {
  op.Doc("values of a table named by 8-bit codes").Input("X").Input("Dict").Output("Out");
  op.InferShape(LogShape).Kernel(DType::kI8, DequantizeLog);
}

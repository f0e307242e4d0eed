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

HEDDLE_EXAMPLES(quantize, R"(
example int8
attr is_negative_input BOOLEAN true
attr Scale FLOAT 100.0
attr output_format STRING "NCHW"
in Input float32 [1, 2, 2, 2] 0.1 -0.53 0.11 0.94 -0.55 0.03 0.66 0.37
out Output int8 [1, 2, 2, 2] 10 -53 11 94 -55 3 66 37

example int8, bfloat16 true
attr is_negative_input BOOLEAN true
attr Scale FLOAT 100.0
attr output_format STRING "NCHW"
attr bfloat16 BOOLEAN true
in Input float32 [1, 2, 2, 2] 0.1 -0.53 0.11 0.94 -0.55 0.03 0.66 0.37
out Output bfloat16 [1, 2, 2, 2] 1e+01 -53 11 94 -55 3 66 37
)")

HEDDLE_EXAMPLES(dequantize, R"(
example int8
attr Scale FLOAT 50.0
in Input int8 [3] -100 3 77
out Output float32 [3] -2 0.06 1.54

example bfloat16
attr Scale FLOAT 50.0
in Input bfloat16 [3] -100 3 77
out Output float32 [3] -2 0.06 1.54

example uint8, with a shift
attr Scale FLOAT 50.0
attr Shift FLOAT 10.0
in Input uint8 [3] 100 3 77
out Output float32 [3] 1.8 -0.14 1.3399999
)")

HEDDLE_EXAMPLES(dequantize_log, R"(
example int8
in X int8 [2, 3] 0 3 -128 -1 127 5
in Dict float32 [128] 1.4 1.2 1.4 1.3 1 1.2 1.8 1.4 1 0.4 1.2 0.5 0.1 1.9 1.8 1.7 1.1 1 0.8 1.5 1.7
  1.3 1.8 1.1 1 1.8 1.3 0.3 0.1 1.8 1.4 1.2 0.2 0.8 1.3 0.3 1.3 1.3 0.3 1.5 0.4 1.1 1.2 1 0.9 0.4
  1.4 0 1.8 1.8 0.4 0.7 0.6 0.6 1.6 0.3 2 1.2 0.1 1.9 1.2 0.2 0.3 2 0.9 0.4 0.5 0.4 0.6 0.7 0.5 0.7
  0 0.7 0.7 1.8 0.6 1 0.6 1.7 1.1 1.7 1.9 0.6 1.6 1.5 2 1.4 0.4 0.2 1 1.5 1 1.6 0.1 1.4 0.6 0.8 1.9
  1.1 1.1 0.7 1.7 1.6 1.3 1.1 0.2 1.3 0.4 2 1.1 1.2 2 0.1 0.6 1.7 1.5 0 0.4 0.6 1.1 1.6 1.3 0.7 0.6
  0.5 1.4 1.6
out Out float32 [2, 3] 1.4 1.3 -1.4 -1.6 1.6 1.2
)")

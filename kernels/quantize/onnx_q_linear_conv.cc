// Convolutions and products of 8-bit integers, summed up exactly.
#include <cmath>

#include "kernels/quantize/integer_sums.h"

namespace heddle {
namespace {

Status OnnxConvIntegerShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"x", "w", "x_zero_point", "w_zero_point"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Convolution c,
                          ConvolutionOf(ctx, ctx.InShape("x"), ctx.InShape("w")));
  ctx.SetOut("y", c.OutShape(), DType::kI32);
  return Status::Ok();
}

constexpr IntegerSlots kConvSlots{"x", "w", "x_zero_point", "w_zero_point"};

Result<std::unique_ptr<KernelState>> PrepareOnnxConv(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Convolution c,
                          ConvolutionOf(ctx, ctx.InShape("x"), ctx.InShape("w")));
  return PrepareConvSums(ctx, c, kConvSlots);
}

Status OnnxConvInteger(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Convolution c,
                          ConvolutionOf(ctx, ctx.In("x").shape(), ctx.In("w").shape()));
  return RunConvSums(ctx, c, kConvSlots, ctx.Out("y").mutable_data<int32_t>());
}

Status OnnxQLinearConvShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"x", "w", "B", "w_scale"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Convolution c,
                          ConvolutionOf(ctx, ctx.InShape("x"), ctx.InShape("w")));
  if (ctx.HasIn("B")) HEDDLE_RETURN_IF_ERROR(CheckBias(ctx.InShape("B"), c.out_channels));
  const int64_t scales = ctx.InShape("w_scale").numel();
  if (scales != 1 && scales != c.out_channels)
    return InvalidArgument("w_scale has ", scales, " elements, expected 1 or ", c.out_channels);
  ctx.SetOut("y", c.OutShape(), ctx.InDType("y_zero_point"));
  return Status::Ok();
}

Status OnnxQLinearConv(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Convolution c,
                          ConvolutionOf(ctx, ctx.In("x").shape(), ctx.In("w").shape()));
  Tensor& out = ctx.Out("y");
  Tensor sums = ctx.Scratch(DType::kI32, out.shape());
  HEDDLE_RETURN_IF_ERROR(RunConvSums(ctx, c, kConvSlots, sums.mutable_data<int32_t>()));
  const int64_t size = c.windows.out.numel();
  if (const Tensor* bias = ctx.InOpt("B")) {
    if (bias->dtype() != DType::kI32)
      return InvalidArgument("B is ", Name(bias->dtype()), ", expected int32");
    AddBias(bias->data<int32_t>(), c.batch, c.out_channels, size, sums.mutable_data<int32_t>());
  }
  HEDDLE_ASSIGN_OR_RETURN(const float x_scale, OneScale(ctx.In("x_scale"), "x_scale"));
  HEDDLE_ASSIGN_OR_RETURN(const float y_scale, OneScale(ctx.In("y_scale"), "y_scale"));
  HEDDLE_ASSIGN_OR_RETURN(const int32_t zero, OneZero(ctx.In("y_zero_point"), "y_zero_point"));
  const Tensor& w_scale = ctx.In("w_scale");
  if (w_scale.dtype() != DType::kF32)
    return InvalidArgument("w_scale is ", Name(w_scale.dtype()), ", expected float32");
  const bool each = w_scale.numel() > 1;
  const float* const scales = w_scale.data<float>();
  const auto scale_of = [&](int64_t plane) {
    const float scale = x_scale * scales[each ? plane % c.out_channels : 0] / y_scale;
    return [scale](int64_t) { return scale; };
  };
  return Requantize(ctx, sums.data<int32_t>(), c.batch * c.out_channels, size, zero, scale_of,
                    &out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_conv_integer) {
  op.Doc("convolution of 8-bit integers in int32, padding contributing nothing");
  op.Input("x").Input("w").Input("x_zero_point", kOptional).Input("w_zero_point", kOptional);
  op.Output("y").Attr("group", 1);
  DeclareWindows(op, true);
  op.InferShape(OnnxConvIntegerShape).Prepare(PrepareOnnxConv);
  op.Kernel({DType::kU8, DType::kI8}, OnnxConvInteger);
}
HEDDLE_OP(onnx_q_linear_conv) {
  op.Doc("convolution of 8-bit integers with scales and zero points, the result rounded to 8 bits");
  op.Input("x").Input("x_scale").Input("x_zero_point").Input("w").Input("w_scale");
  op.Input("w_zero_point").Input("y_scale").Input("y_zero_point").Input("B", kOptional);
  op.Output("y").Attr("group", 1);
  DeclareWindows(op, true);
  op.InferShape(OnnxQLinearConvShape).Prepare(PrepareOnnxConv);
  op.Kernel({DType::kU8, DType::kI8}, OnnxQLinearConv);
}

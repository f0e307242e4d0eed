// Convolutions and products of 8-bit integers, summed up exactly.
#include <cmath>

#include "kernels/conv_ops/convolve.h"
#include "kernels/quantize/quantized.h"

namespace heddle {
namespace {

Status OnnxConvIntegerShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"x", "w", "x_zero_point", "w_zero_point"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Convolution c,
                          ConvolutionOf(ctx, ctx.InShape("x"), ctx.InShape("w")));
  ctx.SetOut("y", c.OutShape(), DType::kI32);
  return Status::Ok();
}

// y = the convolution of x - x_zero with w - w_zero, in int32.
Status ConvolveIntegers(const KernelContext& ctx, const Convolution& c, int32_t* y) {
  const Tensor &x = ctx.In("x"), &w = ctx.In("w");
  Tensor wide_x = ctx.Scratch(DType::kI32, x.shape()), wide_w = ctx.Scratch(DType::kI32, w.shape());
  HEDDLE_RETURN_IF_ERROR(
      Centered(x, ctx.InOpt("x_zero_point"), 1, "x_zero_point", wide_x.mutable_data<int32_t>()));
  HEDDLE_RETURN_IF_ERROR(Centered(w, ctx.InOpt("w_zero_point"), c.out_channels, "w_zero_point",
                                  wide_w.mutable_data<int32_t>()));
  Convolve<int32_t>(ctx, c, wide_x.data<int32_t>(), wide_w.data<int32_t>(), y);
  return Status::Ok();
}

Status OnnxConvInteger(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Convolution c,
                          ConvolutionOf(ctx, ctx.In("x").shape(), ctx.In("w").shape()));
  return ConvolveIntegers(ctx, c, ctx.Out("y").mutable_data<int32_t>());
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
  HEDDLE_RETURN_IF_ERROR(ConvolveIntegers(ctx, c, sums.mutable_data<int32_t>()));
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
  return Requantize(
      sums.data<int32_t>(), out.numel(), zero,
      [&](int64_t i) {
        const int64_t m = size == 0 ? 0 : i / size % c.out_channels;
        return x_scale * w_scale.data<float>()[each ? m : 0] / y_scale;
      },
      &out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_conv_integer) {
  op.Doc("convolution of 8-bit integers in int32, padding contributing nothing");
  op.Input("x").Input("w").Input("x_zero_point", kOptional).Input("w_zero_point", kOptional);
  op.Output("y").Attr("group", 1);
  DeclareWindows(op, true);
  op.InferShape(OnnxConvIntegerShape).Kernel({DType::kU8, DType::kI8}, OnnxConvInteger);
}
HEDDLE_OP(onnx_q_linear_conv) {
  op.Doc("convolution of 8-bit integers with scales and zero points, the result rounded to 8 bits");
  op.Input("x").Input("x_scale").Input("x_zero_point").Input("w").Input("w_scale");
  op.Input("w_zero_point").Input("y_scale").Input("y_zero_point").Input("B", kOptional);
  op.Output("y").Attr("group", 1);
  DeclareWindows(op, true);
  op.InferShape(OnnxQLinearConvShape).Kernel({DType::kU8, DType::kI8}, OnnxQLinearConv);
}

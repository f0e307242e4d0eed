// Convolutions over any number of dimensions, as products of matrices with the windows' columns.
#include "kernels/base/check.h"
#include "kernels/onnx_nn/convolve.h"

namespace heddle {
namespace {

Status OnnxConvShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X", "W", "B"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Convolution c,
                          ConvolutionOf(ctx, ctx.InShape("X"), ctx.InShape("W")));
  if (ctx.HasIn("B")) HEDDLE_RETURN_IF_ERROR(CheckBias(ctx.InShape("B"), c.out_channels));
  ctx.SetOut("Y", c.OutShape(), ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct OnnxConv {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &w = ctx.In("W");
    const Tensor* bias = ctx.InOpt("B");
    Tensor& out = ctx.Out("Y");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&w, bias}));
    HEDDLE_ASSIGN_OR_RETURN(const Convolution c, ConvolutionOf(ctx, x.shape(), w.shape()));
    Convolve<T>(ctx, c, x.data<T>(), w.data<T>(), out.template mutable_data<T>());
    if (bias != nullptr)
      AddBias(bias->data<T>(), c.batch, c.out_channels, c.windows.out.numel(),
              out.template mutable_data<T>());
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_conv) {
  op.Doc("convolution over any number of dimensions").Input("X").Input("W");
  op.Input("B", kOptional).Output("Y").Attr("group", 1);
  DeclareWindows(op, true);
  op.InferShape(OnnxConvShape).Kernels<OnnxConv, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_EXAMPLES(onnx_conv, R"(
example two dimensions, groups, bias
attr group INT 2
attr pads INTS [1, 0, 0, 1]
attr strides INTS [2, 1]
in X float32 [1, 2, 3, 3] 1 2 3 4 5 6 7 8 9 -1 -2 -3 -4 -5 -6 -7 -8 -9
in W float32 [4, 1, 2, 2] 1 0 -1 2 0.5 1 1.5 -2 1 1 1 1 0 -1 2 3
in B float32 [4] 0.25 -0.5 1 0
out Y float32 [1, 4, 2, 3] 3.25 4.25 -2.75 13.25 15.25 -2.75 -3 -3.5 4 1 2 16 -2 -4 -2 -23 -27 -14
  -8 -13 -6 -33 -37 -18

example one dimension, SAME_UPPER
attr auto_pad STRING "SAME_UPPER"
attr strides INTS [2]
in X float32 [1, 1, 4] 1 2 3 4
in W float32 [1, 1, 3] 1 10 100
out Y float32 [1, 1, 2] 321 43

example one dimension, SAME_LOWER, dilated
attr auto_pad STRING "SAME_LOWER"
attr dilations INTS [2]
in X float32 [1, 1, 4] 1 2 3 4
in W float32 [1, 1, 2] 1 10
out Y float32 [1, 1, 4] 20 31 42 3

example three dimensions
attr kernel_shape INTS [1, 2, 2]
in X float32 [1, 1, 2, 2, 3] 1 2 3 4 5 6 7 8 9 10 11 12
in W float32 [2, 1, 1, 2, 2] 1 0 -1 2 0.5 1 1.5 -2
out Y float32 [1, 2, 2, 1, 2] 7 9 19 21 -1.5 -0.5 4.5 5.5
)")

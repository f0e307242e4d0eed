// Convolutions over any number of dimensions, as products of matrices with the windows' columns.
#include "kernels/base/check.h"
#include "kernels/conv_ops/convolve.h"

namespace heddle {
namespace {

Status OnnxConvShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X", "W", "B"})) return SameRank(ctx, "X", "Y", 1);
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

// pad_constant_like: pads Y to the shape of X with a constant.
#include "core/shapes.h"
#include "kernels/strided/index_pad.h"

namespace heddle {
namespace {

// Y padded at the ends to the shape `large`.
Status PaddingTo(const Shape& y, const Shape& large, Padding* pad) {
  bool fits = y.rank() == large.rank();
  pad->rank = y.rank();
  for (int i = 0; fits && i < y.rank(); ++i) {
    pad->after[i] = large[i] - y[i];
    fits = y[i] < 0 || large[i] < 0 || pad->after[i] >= 0;
  }
  if (fits) return Status::Ok();
  return InvalidArgument("'Y' of shape ", y.ToString(), " cannot be padded to ", large.ToString());
}

Status LikeShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& y = ctx.InShape("Y");
  if (!x.known_rank() || !y.known_rank()) return ctx.Defer();
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(PaddingTo(y, x, &pad));
  ctx.SetOut("Out", x, ctx.InDType("Y"));
  return Status::Ok();
}

Status PadLike(KernelContext& ctx) {
  const Tensor& y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(PaddingTo(y.shape(), out.shape(), &pad));
  return RunPad(ctx, y, pad, PadMode::kConstant, ctx.Float("pad_value"), out);
}

Status PadLikeGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("Y@GRAD");
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(PaddingTo(out.shape(), grad.shape(), &pad));
  return RunPadGrad(ctx, grad, pad, PadMode::kConstant, out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(pad_constant_like) {
  op.Doc("Y with pad_value behind it, as large as X.")
      .Input("X", kNoBuffer)
      .Input("Y")
      .Output("Out")
      .Attr("pad_value", 0.0)
      .KernelKey("Y")
      .InferShape(LikeShape)
      .AnyKernel(PadLike);
}

HEDDLE_OP(pad_constant_like_grad) {
  op.Input("Out@GRAD")
      .Input("Y", kNoBuffer)
      .Output("Y@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(PadLikeGrad);
}

// pad and pad_constant_like: constant padding of every dimension.
#include "core/shapes.h"
#include "kernels/strided/index_pad.h"

namespace heddle {
namespace {

Status ReadPadding(const OpContext& ctx, Padding* pad) {
  const Ints& list = ctx.IntList("paddings");
  if (list.size() % 2 != 0 || list.size() > 2 * static_cast<size_t>(Shape::kMaxRank))
    return InvalidArgument("'paddings' has ", list.size(), " values; expected two per dimension");
  pad->rank = static_cast<int>(list.size() / 2);
  for (int i = 0; i < pad->rank; ++i) {
    pad->before[i] = list[2 * static_cast<size_t>(i)];
    pad->after[i] = list[2 * static_cast<size_t>(i) + 1];
  }
  return Status::Ok();
}

Status PadShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, &pad));
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, PaddedShape(x, pad, PadMode::kConstant));
  ctx.SetOut("Out", out, ctx.InDType("X"));
  if (x.rank() > 0 && out[0] == x[0]) ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Status GradShape(ShapeContext& ctx) {
  Shape x = ctx.InShape("Out@GRAD");
  if (!x.known_rank()) return ctx.Defer();
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, &pad));
  if (pad.rank != x.rank())
    return InvalidArgument("there are paddings for ", pad.rank, " dimensions, but 'Out@GRAD' has ",
                           x.rank());
  for (int i = 0; i < x.rank(); ++i) {
    if (x[i] < 0) continue;
    x[i] -= pad.before[i] + pad.after[i];
    if (x[i] < 0)
      return InvalidArgument("'Out@GRAD' of shape ", ctx.InShape("Out@GRAD").ToString(),
                             " is smaller than its padding");
  }
  ctx.SetOut("X@GRAD", x, ctx.InDType("Out@GRAD"));
  return Status::Ok();
}

Status Pad(KernelContext& ctx) {
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, &pad));
  return RunPad(ctx, ctx.In("X"), pad, PadMode::kConstant, ctx.Float("pad_value"), ctx.Out("Out"));
}

Status PadGrad(KernelContext& ctx) {
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, &pad));
  return RunPadGrad(ctx, ctx.In("Out@GRAD"), pad, PadMode::kConstant, ctx.Out("X@GRAD"));
}

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

HEDDLE_OP(pad) {
  op.Doc("X with pad_value around it; paddings: before and after each dimension in turn.")
      .Input("X")
      .Output("Out")
      .Attr("paddings", Ints{})
      .Attr("pad_value", 0.0)
      .InferShape(PadShape)
      .AnyKernel(Pad);
}
HEDDLE_OP(pad_grad) {
  op.Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("paddings", Ints{})
      .InferShape(GradShape)
      .AnyKernel(PadGrad);
}
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

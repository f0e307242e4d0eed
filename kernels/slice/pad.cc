// pad: constant padding of every dimension.
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

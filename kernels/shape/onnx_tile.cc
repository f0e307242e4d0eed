// Repeated, and broadcast, tensors: repeats and shape are operands.
#include "kernels/operands/operands.h"
#include "kernels/strided/index_expand.h"

namespace heddle {
namespace {

Status OnnxTileShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.is_static() || !Known(ctx, "repeats")) return SameRank(ctx, "input", "output");
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts repeats, IntsIn(ctx, "repeats"));
  if (repeats.size() != static_cast<size_t>(x.rank()))
    return InvalidArgument("repeats has ", repeats.size(), " elements, expected one for each of ",
                           x.rank(), " dimensions");
  ShortInts dims;
  for (int i = 0; i < x.rank(); ++i) {
    int64_t d = 0;
    if (repeats[static_cast<size_t>(i)] < 0 ||
        __builtin_mul_overflow(x[i], repeats[static_cast<size_t>(i)], &d))
      return InvalidArgument("repeats holds ", repeats[static_cast<size_t>(i)], " for dimension ",
                             i, " of input ", x.ToString());
    dims.push_back(d);
  }
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape(dims, "output"));
  ctx.SetOut("output", out, ctx.InDType("input"));
  return Status::Ok();
}

Status OnnxTile(KernelContext& ctx) {
  Tensor& out = ctx.Out("output");
  return out.numel() == 0 ? Status::Ok() : RunRepeat(ctx, ctx.In("input"), out);
}

Status OnnxExpandShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.is_static() || !Known(ctx, "shape")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape wanted, MakeShape(dims, "shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, BroadcastShape(x, wanted, -1));
  HEDDLE_RETURN_IF_ERROR(MakeShape(out, "output").status());
  ctx.SetOut("output", out, ctx.InDType("input"));
  return Status::Ok();
}

Status OnnxExpand(KernelContext& ctx) {
  Tensor& out = ctx.Out("output");
  if (out.numel() > 0) ExpandTo(ctx, ctx.In("input"), out.shape(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_tile) {
  op.Doc("input repeated along its dimensions").Input("input").Input("repeats", kShapeValue);
  op.Output("output").InferShape(OnnxTileShape).AnyKernel(OnnxTile);
}
HEDDLE_OP(onnx_expand) {
  op.Doc("input broadcast with a shape, either of which may be the larger one");
  op.Input("input").Input("shape", kShapeValue).Output("output");
  op.InferShape(OnnxExpandShape).AnyKernel(OnnxExpand);
}

// Slices by begin, end and strides with masks, their gradient, and tensors with a slice replaced.
#include "kernels/operands/narrow.h"
#include "kernels/slice/slice_spec.h"

namespace heddle {
namespace {

Status StridedSliceShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.known_rank() || !ctx.InShape("begin").is_static() || !ctx.InShape("end").is_static() ||
      !ctx.InShape("strides").is_static())
    return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MaskedSlice spec, MaskedSliceIn(ctx, x));
  ctx.SetOut("output", spec.out, ctx.InDType("input"));
  return Status::Ok();
}

Status StridedSlice(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  HEDDLE_ASSIGN_OR_RETURN(const MaskedSlice spec, MaskedSliceIn(ctx, x.shape()));
  Tensor& out = ctx.Out("output");
  if (out.numel() == 0) return Status::Ok();
  SliceCopy(SizeOf(x.dtype()), x.shape(), spec, true).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

Status CheckSliced(const Shape& got, const MaskedSlice& spec, const char* slot) {
  if (got == spec.out) return Status::Ok();
  return InvalidArgument(slot, " has shape ", got.ToString(), ", the slice has ",
                         spec.out.ToString());
}

Status StridedSliceGradShape(ShapeContext& ctx) {
  if (!Known(ctx, "shape")) return OpenShape(ctx, "shape", "output", ctx.InDType("dy"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "shape"));
  ctx.SetOut("output", shape, ctx.InDType("dy"));
  return Status::Ok();
}

Status StridedSliceGrad(KernelContext& ctx) {
  const Tensor& dy = ctx.In("dy");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const MaskedSlice spec, MaskedSliceIn(ctx, out.shape()));
  HEDDLE_RETURN_IF_ERROR(CheckSliced(dy.shape(), spec, "dy"));
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  if (dy.numel() == 0) return Status::Ok();
  SliceCopy(SizeOf(dy.dtype()), out.shape(), spec, false).Run(ctx, dy.raw(), out.mutable_raw());
  return Status::Ok();
}

Status SliceUpdateShape(ShapeContext& ctx) {
  if (ctx.InDType("value") != ctx.InDType("input"))
    return InvalidArgument("value is ", Name(ctx.InDType("value")), ", input ",
                           Name(ctx.InDType("input")));
  ctx.SetOut("output", ctx.InShape("input"), ctx.InDType("input"));
  return Status::Ok();
}

Status SliceUpdate(KernelContext& ctx) {
  const Tensor &x = ctx.In("input"), &value = ctx.In("value");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const MaskedSlice spec, MaskedSliceIn(ctx, x.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(value.shape(), spec.out, -1));
  HEDDLE_RETURN_IF_ERROR(CheckSliced(shape, spec, "value"));
  Tensor full = ctx.Scratch(value.dtype(), shape);
  ExpandTo(ctx, value, shape, full.mutable_raw());
  if (out.raw() != x.raw()) CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
  if (full.numel() == 0) return Status::Ok();
  SliceCopy(SizeOf(x.dtype()), out.shape(), spec, false).Run(ctx, full.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(masked_slice) {
  op.Doc("elements from begin up to end, strides apart; bits of the masks drop bounds and axes");
  op.Input("input").Input("begin", kShapeValue).Input("end", kShapeValue);
  op.Input("strides", kShapeValue).Output("output");
  DeclareSliceMasks(op);
  op.InferShape(StridedSliceShape).AnyKernel(StridedSlice);
}
HEDDLE_OP(masked_slice_grad) {
  op.Doc("zeros of a shape with dy where masked_slice would read");
  op.Input("shape", kShapeValue).Input("begin", kShapeValue).Input("end", kShapeValue);
  op.Input("strides", kShapeValue).Input("dy").Output("output");
  DeclareSliceMasks(op);
  op.InferShape(StridedSliceGradShape).KernelKey("dy").AnyKernel(StridedSliceGrad);
}
HEDDLE_OP(masked_slice_update) {
  op.Doc("input with value, broadcast, where masked_slice would read");
  op.Input("input").Input("begin", kShapeValue).Input("end", kShapeValue);
  op.Input("strides", kShapeValue).Input("value").Output("output").Inplace("input", "output");
  DeclareSliceMasks(op);
  op.InferShape(SliceUpdateShape).AnyKernel(SliceUpdate);
}

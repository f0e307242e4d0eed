// Tensors of equal elements in the shape of another: fill_any_like, fill_zeros_like(2), fill_any.
#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"

namespace heddle {
namespace {

Status LikeShape(ShapeContext& ctx) {
  const int64_t proto = ctx.Int("dtype");
  DType dtype = ctx.InDType("X");
  if (proto >= 0) {
    HEDDLE_ASSIGN_OR_RETURN(dtype, CheckedDType(proto));
  }
  if (!ctx.InVar("X")->is_tensor()) return InvalidArgument("input X must be a tensor");
  ctx.SetOut("Out", ctx.InShape("X"), dtype);
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Status RunValue(KernelContext& ctx) {
  FillElements(ctx, ctx.Out("Out"), ctx.Float("value"));
  return Status::Ok();
}
Status RunZeros(KernelContext& ctx) {
  FillElements(ctx, ctx.Out("Out"), 0);
  return Status::Ok();
}
Status RunZeroGrad(KernelContext& ctx) {
  FillElements(ctx, ctx.Out("X@GRAD"), 0);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fill_any_like) {
  op.Doc("X's shape filled with `value`.").Input("X", kNoBuffer).Output("Out");
  op.Attr("value", 0.0).Attr("dtype", -1).InferShape(LikeShape).AnyKernel(RunValue);
}
HEDDLE_OP(fill_zeros_like) {
  op.Doc("Zeros in X's shape.").Input("X", kNoBuffer).Output("Out");
  op.InferShape(SameShape).AnyKernel(RunZeros);
}
HEDDLE_OP(fill_zeros_like2) {
  op.Doc("Zeros in X's shape.").Input("X", kNoBuffer).Output("Out").Attr("dtype", 5);
  op.InferShape(LikeShape).AnyKernel(RunZeros);
}
HEDDLE_OP(fill_any) {
  op.Doc("Overwrites X with `value`.").Input("X", kNoBuffer).Output("Out").Attr("value", 0.0);
  op.InferShape(SameShape).AnyKernel(RunValue);
}
HEDDLE_OP(fill_any_grad) {
  op.Input("Out@GRAD", kNoBuffer).Output("X@GRAD").Attr("value", 0.0);
  op.InferShape(SameShape).AnyKernel(RunZeroGrad);
}

// index_add: adds items to a tensor along one axis, at a vector of indices.
#include "core/shapes.h"
#include "kernels/index/axis_items.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status IndexAdd(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, ItemAxis(ctx, "axis", x.shape()));
  Tensor kept_index, kept_value;
  const Tensor& index = Apart(ctx, ctx.In("Index"), out, &kept_index);
  const Tensor& value = Apart(ctx, ctx.In("AddValue"), out, &kept_value);
  CopyBytes(ctx, x.raw(), out.mutable_raw(), out.bytes());
  return AddItems(ctx, value, axis, index, out);
}

Status IndexAddGradShape(ShapeContext& ctx) {
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", ctx.InShape("Out@GRAD"), ctx.InDType("Out@GRAD"));
  if (ctx.HasOut("AddValue@GRAD"))
    ctx.SetOut("AddValue@GRAD", ctx.InShape("AddValue"), ctx.InDType("Out@GRAD"));
  return Status::Ok();
}

Status IndexAddGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, ItemAxis(ctx, "axis", grad.shape()));
  if (Tensor* to = ctx.OutOpt("X@GRAD")) CopyBytes(ctx, grad.raw(), to->mutable_raw(), to->bytes());
  Tensor* to = ctx.OutOpt("AddValue@GRAD");
  return to == nullptr ? Status::Ok() : TakeItems(ctx, grad, axis, ctx.In("Index"), *to);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(index_add) {
  op.Doc("X with AddValue added to the items along `axis` named by Index.")
      .Input("X")
      .Input("Index")
      .Input("AddValue")
      .Output("Out")
      .Attr("axis", 0)
      .Inplace("X", "Out")
      .InferShape(SameShape)
      .AnyKernel(IndexAdd);
}

HEDDLE_OP(index_add_grad) {
  op.Input("Out@GRAD")
      .Input("Index")
      .Input("AddValue", kNoBuffer)
      .Output("X@GRAD", kOptional)
      .Output("AddValue@GRAD", kOptional)
      .Attr("axis", 0)
      .InferShape(IndexAddGradShape)
      .AnyKernel(IndexAddGrad);
}

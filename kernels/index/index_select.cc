// index_select: items along one axis, picked by a vector of indices.
#include "core/operands/any_address.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/index/axis_items.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status SelectShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  const Shape& index = ctx.InShape("Index");
  if (!out.known_rank() || !index.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int axis, ItemAxis(ctx, "dim", out));
  if (index.rank() > 2 || (index.rank() == 2 && index[1] != 1 && index[1] >= 0))
    return InvalidArgument("'Index' must have the shape [n], not ", index.ToString());
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("Index"), "Index"));
  out[axis] = index.rank() == 0 ? 1 : index[0];
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

Status Select(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, ItemAxis(ctx, "dim", x.shape()));
  return TakeItems(ctx, x, axis, ctx.In("Index"), ctx.Out("Out"));
}

Status SelectGrad(KernelContext& ctx) {
  Tensor& out = ctx.Out("X@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, ItemAxis(ctx, "dim", out.shape()));
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  return AddItems(ctx, ctx.In("Out@GRAD"), axis, ctx.In("Index"), out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(index_select) {
  op.Doc("Items of X along `dim` named by Index.")
      .Input("X", kAnyAddress)
      .Input("Index")
      .Output("Out")
      .Attr("dim", 0)
      .InferShape(SelectShape)
      .AnyKernel(Select);
}

HEDDLE_OP(index_select_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Index")
      .Output("X@GRAD")
      .Attr("dim", 0)
      .InferShape(GradLikeInputs)
      .AnyKernel(SelectGrad);
}

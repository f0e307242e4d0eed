// take_along_axis: one element of X per entry of Index, along an axis.
#include "core/operands/any_address.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/index/nd_rows.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status TakeShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("Input");
  const Shape& index = ctx.InShape("Index");
  if (!index.known_rank()) return ctx.Defer();
  if (!x.known_rank()) {
    ctx.SetOut("Result", index, ctx.InDType("Input"));
    return Status::Ok();
  }
  HEDDLE_RETURN_IF_ERROR(NormalAxis(ctx.Int("Axis"), x.rank()).status());
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("Index"), "Index"));
  if (x.rank() != index.rank())
    return InvalidArgument("'Input' ", x.ToString(), " and 'Index' ", index.ToString(),
                           " must have one rank");
  ctx.SetOut("Result", index, ctx.InDType("Input"));
  return Status::Ok();
}

Status Take(KernelContext& ctx) {
  const Tensor& x = ctx.In("Input");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor elements, ElementsOfIndex(ctx, x.shape()));
  GatherRows(ctx, x.raw(), elements, GoodRows(x.numel()), 1,
             static_cast<int64_t>(SizeOf(x.dtype())), ctx.Out("Result").mutable_raw());
  return Status::Ok();
}

Status TakeGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Result@GRAD");
  Tensor& out = ctx.Out("Input@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor elements, ElementsOfIndex(ctx, out.shape()));
  if (grad.numel() != elements.numel() || grad.dtype() != out.dtype())
    return InvalidArgument("'Result@GRAD' of shape ", grad.shape().ToString(),
                           " does not fit 'Index'");
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  return ScatterAddRows(ctx, grad.raw(), elements, GoodRows(out.numel()), 1, 1, out.dtype(),
                        out.mutable_raw());
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(take_along_axis) {
  op.Doc("Elements of Input: entry [i, j] of Index names the place along Axis in row [i, j].")
      .Input("Input", kAnyAddress)
      .Input("Index")
      .Output("Result")
      .Attr("Axis", 0)
      .InferShape(TakeShape)
      .AnyKernel(Take);
}

HEDDLE_OP(take_along_axis_grad) {
  op.Input("Result@GRAD")
      .Input("Input", kNoBuffer)
      .Input("Index")
      .Output("Input@GRAD")
      .Attr("Axis", 0)
      .InferShape(GradLikeInputs)
      .AnyKernel(TakeGrad);
}

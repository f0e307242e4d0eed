#include "core/operands/any_address.h"
#include "core/shapes.h"
#include "kernels/index/nd_rows.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status SampleShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& index = ctx.InShape("Index");
  if (!x.known_rank() || !index.known_rank()) return ctx.Defer();
  if (x.rank() != 2 || index.rank() != 2 || (x[0] >= 0 && index[0] >= 0 && x[0] != index[0]))
    return InvalidArgument("'X' ", x.ToString(), " and 'Index' ", index.ToString(),
                           " must be matrices with as many rows as each other");
  ctx.SetOut("Out", index, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Status Sample(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor elements,
                          ElementsAlongAxis(ctx, ctx.In("Index"), x.shape(), 1, "Index"));
  GatherRows(ctx, x.raw(), elements, GoodRows(x.numel()), 1,
             static_cast<int64_t>(SizeOf(x.dtype())), ctx.Out("Out").mutable_raw());
  return Status::Ok();
}

Status SampleGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  if (out.rank() != 2) return InvalidArgument("'X' must be a matrix");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor elements,
                          ElementsAlongAxis(ctx, ctx.In("Index"), out.shape(), 1, "Index"));
  if (grad.numel() != elements.numel() || grad.dtype() != out.dtype())
    return InvalidArgument("'Out@GRAD' of shape ", grad.shape().ToString(),
                           " does not fit 'Index'");
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  return ScatterAddRows(ctx, grad.raw(), elements, GoodRows(out.numel()), 1, 1, out.dtype(),
                        out.mutable_raw());
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(index_sample) {
  op.Doc("Of every row of X the elements that the same row of Index names.")
      .Input("X", kAnyAddress)
      .Input("Index")
      .Output("Out")
      .InferShape(SampleShape)
      .AnyKernel(Sample);
}
HEDDLE_OP(index_sample_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Index")
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(SampleGrad);
}

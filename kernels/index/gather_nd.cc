#include "core/operands/any_address.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/index/nd_rows.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status GatherNdShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& index = ctx.InShape("Index");
  if (!x.known_rank() || !index.known_rank()) return ctx.Defer();
  if (index.rank() == 0) return InvalidArgument("'Index' must have at least one dimension");
  const int64_t k = index.dim(-1);
  if (k < 0) return ctx.Defer();
  if (k > x.rank() || index.rank() - 1 + x.rank() - k > Shape::kMaxRank)
    return InvalidArgument("'Index' of shape ", index.ToString(), " cannot index 'X' of shape ",
                           x.ToString());
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("Index"), "Index"));
  Shape out(index.dims().first(static_cast<size_t>(index.rank() - 1)));
  for (int i = static_cast<int>(k); i < x.rank(); ++i) out.push_back(x[i]);
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

Status GatherNd(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Tensor& index = ctx.In("Index");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor rows, RowsOfNdIndex(ctx, index, x.shape(), "Index"));
  const int k = static_cast<int>(index.dim(-1));
  const int64_t inner = x.shape().Product(k, x.rank()) * static_cast<int64_t>(SizeOf(x.dtype()));
  GatherRows(ctx, x.raw(), rows, GoodRows(x.shape().Product(0, k)), 1, inner,
             ctx.Out("Out").mutable_raw());
  return Status::Ok();
}

Status GatherNdGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  const Tensor& index = ctx.In("Index");
  Tensor& out = ctx.Out("X@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor rows, RowsOfNdIndex(ctx, index, out.shape(), "Index"));
  const int k = static_cast<int>(index.dim(-1));
  const int64_t inner = out.shape().Product(k, out.rank());
  if (grad.numel() != rows.numel() * inner)
    return InvalidArgument("'Out@GRAD' of shape ", grad.shape().ToString(),
                           " does not fit 'Index' ", index.shape().ToString(), " and 'X' ",
                           out.shape().ToString());
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  return ScatterAddRows(ctx, grad.raw(), rows, GoodRows(out.shape().Product(0, k)), 1, inner,
                        out.dtype(), out.mutable_raw());
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(gather_nd) {
  op.Doc("Parts of X named by Index, whose last dimension indexes X's first ones.")
      .Input("X", kAnyAddress)
      .Input("Index")
      .Output("Out")
      .InferShape(GatherNdShape)
      .AnyKernel(GatherNd);
}
HEDDLE_OP(gather_nd_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Index")
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(GatherNdGrad);
}

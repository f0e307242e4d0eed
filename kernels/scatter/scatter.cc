// scatter and scatter_nd_add: a copy of X with rows replaced by, or increased by, Updates.
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/index/nd_rows.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Elements of one row of X; error when Ids and Updates do not fit it.
Status RowLength(const Shape& x, const Tensor& ids, const Tensor& updates, int64_t* inner) {
  if (x.rank() == 0) return InvalidArgument("'X' must have at least one dimension");
  if (ids.rank() > 2 || (ids.rank() == 2 && ids.dim(1) != 1))
    return InvalidArgument("'Ids' must have the shape [n] or [n, 1], not ", ids.shape().ToString());
  *inner = x.Product(1, x.rank());
  if (updates.numel() == ids.numel() * *inner) return Status::Ok();
  return InvalidArgument("'Updates' of shape ", updates.shape().ToString(), " does not hold ",
                         ids.numel(), " rows of 'X' ", x.ToString());
}

Status Scatter(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  Tensor kept_ids, kept_updates;
  const Tensor& ids = Apart(ctx, ctx.In("Ids"), out, &kept_ids);
  const Tensor& updates = Apart(ctx, ctx.In("Updates"), out, &kept_updates);
  int64_t inner = 0;
  HEDDLE_RETURN_IF_ERROR(RowLength(x.shape(), ids, updates, &inner));
  const IndexRange range = GoodRows(x.dim(0));
  HEDDLE_RETURN_IF_ERROR(CheckIndices(ids, range, "Ids"));
  if (updates.dtype() != x.dtype())
    return InvalidArgument("'Updates' is ", Name(updates.dtype()), ", but 'X' is ",
                           Name(x.dtype()));
  CopyBytes(ctx, x.raw(), out.mutable_raw(), out.bytes());
  const int64_t row = inner * static_cast<int64_t>(SizeOf(x.dtype()));
  if (ctx.Bool("overwrite")) {
    ScatterRows(ctx, updates.raw(), ids, range, 1, row, out.mutable_raw());
    return Status::Ok();
  }
  ZeroRows(out.mutable_raw(), ids, row);
  return ScatterAddRows(ctx, updates.raw(), ids, range, 1, inner, x.dtype(), out.mutable_raw());
}

Status ScatterGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  const Tensor& ids = ctx.In("Ids");
  const IndexRange range = GoodRows(grad.rank() == 0 ? 0 : grad.dim(0));
  HEDDLE_RETURN_IF_ERROR(CheckIndices(ids, range, "Ids"));
  const int64_t row =
      grad.shape().Product(1, grad.rank()) * static_cast<int64_t>(SizeOf(grad.dtype()));
  if (Tensor* to = ctx.OutOpt("Updates@GRAD")) {
    if (static_cast<int64_t>(to->bytes()) != ids.numel() * row)
      return InvalidArgument("'Updates' of shape ", to->shape().ToString(), " does not fit 'Ids'");
    GatherRows(ctx, grad.raw(), ids, range, 1, row, to->mutable_raw());
  }
  if (Tensor* to = ctx.OutOpt("X@GRAD")) {
    CopyBytes(ctx, grad.raw(), to->mutable_raw(), to->bytes());
    ZeroRows(to->mutable_raw(), ids, row);
  }
  return Status::Ok();
}

// X's gradient is as large as the output's, Updates' as Updates.
Status ScatterGradShapes(ShapeContext& ctx) {
  if (ctx.HasOut("X@GRAD")) {
    ctx.SetOut("X@GRAD", ctx.InShape("Out@GRAD"), ctx.InDType("Out@GRAD"));
  }
  if (ctx.HasOut("Updates@GRAD")) {
    ctx.SetOut("Updates@GRAD", ctx.InShape("Updates"), ctx.InDType("Out@GRAD"));
  }
  return Status::Ok();
}

Status ScatterNdAdd(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Tensor& index = ctx.In("Index");
  Tensor& out = ctx.Out("Out");
  Tensor kept;
  const Tensor& updates = Apart(ctx, ctx.In("Updates"), out, &kept);
  HEDDLE_ASSIGN_OR_RETURN(const Tensor rows, RowsOfNdIndex(ctx, index, x.shape(), "Index"));
  const int k = static_cast<int>(index.dim(-1));
  const int64_t inner = x.shape().Product(k, x.rank());
  if (updates.numel() != rows.numel() * inner || updates.dtype() != x.dtype())
    return InvalidArgument("'Updates' (", Name(updates.dtype()), " ", updates.shape().ToString(),
                           ") does not fit 'Index' ", index.shape().ToString(), " and 'X' (",
                           Name(x.dtype()), " ", x.shape().ToString(), ")");
  CopyBytes(ctx, x.raw(), out.mutable_raw(), out.bytes());
  return ScatterAddRows(ctx, updates.raw(), rows, GoodRows(x.shape().Product(0, k)), 1, inner,
                        x.dtype(), out.mutable_raw());
}

Status ScatterNdAddGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  if (Tensor* to = ctx.OutOpt("Updates@GRAD")) {
    const Tensor& index = ctx.In("Index");
    HEDDLE_ASSIGN_OR_RETURN(const Tensor rows, RowsOfNdIndex(ctx, index, grad.shape(), "Index"));
    const int k = static_cast<int>(index.dim(-1));
    const int64_t inner = grad.shape().Product(k, grad.rank());
    if (to->numel() != rows.numel() * inner)
      return InvalidArgument("'Updates' of shape ", to->shape().ToString(),
                             " does not fit 'Index' ", index.shape().ToString());
    GatherRows(ctx, grad.raw(), rows, GoodRows(grad.shape().Product(0, k)), 1,
               inner * static_cast<int64_t>(SizeOf(grad.dtype())), to->mutable_raw());
  }
  if (Tensor* to = ctx.OutOpt("X@GRAD")) CopyBytes(ctx, grad.raw(), to->mutable_raw(), to->bytes());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(scatter) {
  op.Doc("X with rows Ids replaced by Updates, or by their sum when overwrite is off.")
      .Input("X")
      .Input("Ids")
      .Input("Updates")
      .Output("Out")
      .Attr("overwrite", true)
      .Inplace("X", "Out")
      .InferShape(SameShape)
      .AnyKernel(Scatter);
}
HEDDLE_OP(scatter_grad) {
  op.Input("Out@GRAD")
      .Input("Ids")
      .Input("Updates", kNoBuffer)
      .Output("X@GRAD", kOptional)
      .Output("Updates@GRAD", kOptional)
      .InferShape(ScatterGradShapes)
      .AnyKernel(ScatterGrad);
}
HEDDLE_OP(scatter_nd_add) {
  op.Doc("X with Updates added to the parts named by Index.")
      .Input("X")
      .Input("Index")
      .Input("Updates")
      .Output("Out")
      .Inplace("X", "Out")
      .InferShape(SameShape)
      .AnyKernel(ScatterNdAdd);
}
HEDDLE_OP(scatter_nd_add_grad) {
  op.Input("Out@GRAD")
      .Input("Index")
      .Input("Updates", kNoBuffer)
      .Output("X@GRAD", kOptional)
      .Output("Updates@GRAD", kOptional)
      .InferShape(ScatterGradShapes)
      .AnyKernel(ScatterNdAddGrad);
}

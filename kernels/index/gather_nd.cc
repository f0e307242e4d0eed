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
  const int64_t k = index.dim(-1), batch = ctx.Int("batch_dims");
  if (k < 0) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckNdIndex(index, x, batch, "Index"));
  if (index.rank() - 1 + x.rank() - k - batch > Shape::kMaxRank)
    return InvalidArgument("the result of 'X' ", x.ToString(), " and 'Index' ", index.ToString(),
                           " has more than ", Shape::kMaxRank, " dimensions");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("Index"), "Index"));
  Shape out(index.dims().first(static_cast<size_t>(index.rank() - 1)));
  for (int i = static_cast<int>(batch + k); i < x.rank(); ++i) out.push_back(x[i]);
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

// Rows of `x` and their number.
struct NdRowsOf {
  Tensor index;
  int64_t inner = 1;  // elements of a row
  IndexRange range;
};
Result<NdRowsOf> RowsIn(const KernelContext& ctx, const Shape& x) {
  const Tensor& index = ctx.In("Index");
  HEDDLE_RETURN_IF_ERROR(CheckNdIndex(index.shape(), x, ctx.Int("batch_dims"), "Index"));
  const int k = static_cast<int>(ctx.Int("batch_dims") + index.dim(-1));
  NdRowsOf rows;
  rows.inner = x.Product(k, x.rank());
  rows.range = GoodRows(x.Product(0, k));
  // Rows without elements need no memory, but may be many.
  if (rows.inner == 0 && index.dim(-1) == 0) return rows;
  HEDDLE_ASSIGN_OR_RETURN(
      rows.index, RowsOfNdIndex(ctx, index, x, "Index", ctx.Bool("wrap"), ctx.Int("batch_dims")));
  return rows;
}

Status GatherNd(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const NdRowsOf rows, RowsIn(ctx, x.shape()));
  if (rows.inner > 0)
    GatherRows(ctx, x.raw(), rows.index, rows.range, 1,
               rows.inner * static_cast<int64_t>(SizeOf(x.dtype())), ctx.Out("Out").mutable_raw());
  return Status::Ok();
}

Status GatherNdGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const NdRowsOf rows, RowsIn(ctx, out.shape()));
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  if (rows.inner == 0) return Status::Ok();
  if (grad.numel() != rows.index.numel() * rows.inner)
    return InvalidArgument("'Out@GRAD' of shape ", grad.shape().ToString(),
                           " does not fit 'Index' ", ctx.In("Index").shape().ToString(),
                           " and 'X' ", out.shape().ToString());
  return ScatterAddRows(ctx, grad.raw(), rows.index, rows.range, 1, rows.inner, out.dtype(),
                        out.mutable_raw());
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(gather_nd) {
  op.Doc(
        "Parts of X named by Index, whose last dimension indexes X's first ones, or those behind "
        "batch_dims that both share; with `wrap` a negative index counts from the end.")
      .Input("X", kAnyAddress)
      .Input("Index")
      .Output("Out")
      .Attr("batch_dims", 0)
      .Attr("wrap", true)
      .InferShape(GatherNdShape)
      .AnyKernel(GatherNd);
}
HEDDLE_OP(gather_nd_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Index")
      .Output("X@GRAD")
      .Attr("batch_dims", 0)
      .Attr("wrap", true)
      .InferShape(GradLikeInputs)
      .AnyKernel(GatherNdGrad);
}

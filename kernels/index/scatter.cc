// scatter and scatter_nd_add: a copy of X with rows replaced by, or increased by, Updates.
#include "core/shapes.h"
#include "kernels/index/index_args.h"
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
      .Input("Updates", kNoBuffer | kOptional)
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
      .Input("Updates", kNoBuffer | kOptional)
      .Output("X@GRAD", kOptional)
      .Output("Updates@GRAD", kOptional)
      .InferShape(ScatterGradShapes)
      .AnyKernel(ScatterNdAddGrad);
}

HEDDLE_EXAMPLES(scatter, R"(
example float32 4x1x1, no overwrite
attr overwrite BOOLEAN false
in Ids int64 [2] 2 2
in Updates float32 [2, 1, 1] 0.489 0.668
in X float32 [4, 1, 1] 0.38 0.226 0.071 0.535
out Out float32 [4, 1, 1] 0.38 0.226 1.157 0.535

example float32 2x4
in Ids int32 [1] 1
in Updates float32 [1, 4] -0.42 0.21 0.53 -0.11
in X float32 [2, 4] -0.42 -0.04 -0.81 -0.23 0.16 0.35 0.54 -0.61
out Out float32 [2, 4] -0.42 -0.04 -0.81 -0.23 -0.42 0.21 0.53 -0.11

example int64 4
in Ids int64 [4] 2 0 3 1
in Updates float32 [4] -0.341 -0.23 -0.119 -0.008
in X float32 [4] -0.22 0.26 0.5 0.02
out Out float32 [4] -0.23 -0.008 -0.341 -0.119

example float32 3x4
in Ids int32 [2, 1] 1 2
in Updates float32 [2, 4] 0.887 0.451 0.56 0.234 0.669 0.125 0.778 0.343
in X float32 [3, 4] 0.88 0.73 0.7 1.1 1.4 0.61 1.1 1.2 1.1 1.3 1.3 1.3
out Out float32 [3, 4] 0.88 0.73 0.7 1.1 0.887 0.451 0.56 0.234 0.669 0.125 0.778 0.343

example float64 4x1x1, no overwrite
attr overwrite BOOLEAN false
in Ids int64 [2] 2 2
in Updates float64 [2, 1, 1] 0.489 0.668
in X float64 [4, 1, 1] 0.38 0.226 0.071 0.535
out Out float64 [4, 1, 1] 0.38 0.226 1.157 0.535
)")

HEDDLE_EXAMPLES(scatter_grad, R"(
example int64 4
in Ids int64 [4] 2 0 3 1
in Out@GRAD float64 [4] -0.8 -0.3 0.7 -0.8
in Updates float64 [4] -0.23 -0.341 -0.119 -0.008
out Updates@GRAD float64 [4] 0.7 -0.8 -0.8 -0.3
out X@GRAD float64 [4] 0*4

example float64 2x4
in Ids int32 [1] 1
in Out@GRAD float64 [2, 4] -1 0.9 -0.1 0.2 0.7 0.5 0.9 0.7
in Updates float64 [1, 4] 0.21 -0.42 0.53 -0.11
out Updates@GRAD float64 [1, 4] 0.7 0.5 0.9 0.7
out X@GRAD float64 [2, 4] -1 0.9 -0.1 0.2 0*4

example float64 3x4
in Ids int32 [2, 1] 1 2
in Out@GRAD float64 [3, 4] -0.6 0.4 -0.2 0.2 0.5 -0.6 0.1 0.2 0.1 0.6 0.1 -0.2
in Updates float64 [2, 4] 0.887 0.343 0.234 0.778 0.125 0.451 0.669 0.56
out Updates@GRAD float64 [2, 4] 0.5 -0.6 0.1 0.2 0.1 0.6 0.1 -0.2
out X@GRAD float64 [3, 4] -0.6 0.4 -0.2 0.2 0*8

example int64 4, no. 2
in Ids int64 [4] 2 0 3 1
in Out@GRAD float32 [4] -0.8 -0.3 0.7 -0.8
in Updates float32 [4] -0.23 -0.341 -0.119 -0.008
out Updates@GRAD float32 [4] 0.7 -0.8 -0.8 -0.3
out X@GRAD float32 [4] 0*4
)")

HEDDLE_EXAMPLES(scatter_nd_add, R"(
example int32 4x1
in Index int32 [4, 1] 3 1 3 1
in Updates float64 [4] 0.397 0.594 0.2 0.791
in X float64 [4] 0.201 0.399 0.795 0.597
out Out float64 [4] 0.201 1.784 0.795 1.194

example int64 4x1
in Index int64 [4, 1] 1 1 0 0
in Updates float32 [4] 0.109 -0.076 0.294 0.479
in X float32 [2] 0.099 0.029
out Out float32 [2] 0.872 0.062

example float64 2x4x4
in Index int32 [2, 0]
in Updates float64 [2, 4, 4] 0.213 0.785 0.545 0.424 0.454 0.183 0.153 0.755 0.274 0.093 0.876 0.815
  0.244 0.484 0.334 0.695 0.364 0.063 0.725 0.605 0.846 0.906 0.575 0.514 0.635 0.123 0.966 0.936
  0.033 0.394 0.665 0.304
in X float64 [4, 4] 0.419 0.074 0.592 0.823 0.189 0.707 0.247 0.938 0.88 0.362 0.535 0.131 0.304
  0.477 0.65 0.765
out Out float64 [4, 4] 0.996 0.9219999999999999 1.862 1.8519999999999999 1.4889999999999999
  1.7959999999999998 0.975 2.207 1.789 0.578 2.377 1.8820000000000001 0.5810000000000001 1.355 1.649
  1.764

example float32 4x3x4
in Index int64 [4, 1] 0*4
in Updates float32 [4, 3, 4] 0.77 -0.35 -0.89 0.42 0.46 -0.42 -0.23 0.73 0.69 0.04 0.5 0.58 0.27
  0.88 -0.39 0.15 0.11 -0.27 -0.92 -0 0.23 -0.73 -0.85 -0.62 0.84 0.65 -0.31 0.54 -0.04 0.19 -0.08
  -0.54 -0.12 0.08 0.61 -0.69 -0.65 -0.5 0.31 -0.46 -0.19 -0.15 0.38 0.81 0.34 -0.77 -0.58 -0.81
in X float32 [1, 3, 4] 0.85 -0.8 0.1 0.7 0.55 -0.5 -0.2 -0.05 0.4 -0.35 -0.65 0.25
out Out float32 [1, 3, 4] 2.08 -0.120000005 -1.1800001 1.3499999 0.89000005 -1.15 -1.0500001 0.95
  1.5400001 -1.73 -0.96999997 -1.29
)")

HEDDLE_EXAMPLES(scatter_nd_add_grad, R"(
example int32 4x1
in Index int32 [4, 1] 2 3 2 3
in Out@GRAD float64 [4] -0.8 -0.3 0.7 -0.8
in Updates float64 [4] 0.6 0.204 0.798 0.402
out Updates@GRAD float64 [4] 0.7 -0.8 0.7 -0.8
out X@GRAD float64 [4] -0.8 -0.3 0.7 -0.8

example float64 2x4x4
in Index int32 [2, 0]
in Out@GRAD float64 [4, 4] 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0 -0.3
in Updates float64 [2, 4, 4] 0.755 0.334 0.274 0.785 0.454 0.906 0.545 0.936 0.394 0.063 0.033 0.876
  0.575 0.304 0.484 0.725 0.424 0.966 0.815 0.695 0.183 0.123 0.364 0.846 0.665 0.514 0.213 0.153
  0.605 0.635 0.244 0.093
out Updates@GRAD float64 [2, 4, 4] 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0
  -0.3 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0 -0.3
out X@GRAD float64 [4, 4] 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0 -0.3

example int32 4x1, no. 2
in Index int32 [4, 1] 2 3 2 3
in Out@GRAD float32 [4] -0.8 -0.3 0.7 -0.8
in Updates float32 [4] 0.6 0.204 0.798 0.402
out Updates@GRAD float32 [4] 0.7 -0.8 0.7 -0.8
out X@GRAD float32 [4] -0.8 -0.3 0.7 -0.8
)")

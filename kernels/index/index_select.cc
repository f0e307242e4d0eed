// index_select: items along one axis, picked by a vector of indices.
#include "core/operands/any_address.h"
#include "core/shapes.h"
#include "kernels/index/axis_items.h"
#include "kernels/index/index_args.h"
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

HEDDLE_EXAMPLES(index_select, R"(
example float32 3x4, dim 1
attr dim INT 1
in Index int32 [3] 0 1 1
in X float32 [3, 4] 1 4 8 8 1 2 10 12 5 9 10 12
out Out float32 [3, 3] 1 4 4 1 2 2 5 9 9

example float32 1x1x5, dim 2
attr dim INT 2
in Index int64 [2] 4 3
in X float32 [1, 1, 5] -0.537 -0.259 -0.12 -0.676 -0.398
out Out float32 [1, 1, 2] -0.398 -0.676

example float64 12
in Index int64 [6] 0*5 1
in X float64 [12] 1*4 5 5 7 8 4 5 7 8
out Out float64 [6] 1*6

example float32 12
in Index int64 [6] 9 11 0 8 10 1
in X float32 [12] 0 3 7 11 0 8 9 11 0 2 3 6
out Out float32 [6] 2 6 0 0 3 3

example complex64 3x4, dim 1
attr dim INT 1
in Index int32 [3] 0 1 1
in X complex64 [3, 4] 1+0.8j 4+0.3j 8+0.5j 8-0.7j 1-0.8j 2+0.6j 10-0.3j 12+0.1j 5-0.5j 9+0.1j
  10-0.2j 12+0.4j
out Out complex64 [3, 3] 1+0.8j 4+0.3j 4+0.3j 1-0.8j 2+0.6j 2+0.6j 5-0.5j 9+0.1j 9+0.1j

example bfloat16 3x4, dim 1
attr dim INT 1
in Index int32 [3] 0 1 1
in X bfloat16 [3, 4] 1 4 8 8 1 2 1e+01 12 5 9 1e+01 12
out Out bfloat16 [3, 3] 1 4 4 1 2 2 5 9 9
)")

HEDDLE_EXAMPLES(index_select_grad, R"(
example float64 1x1x5, dim 2
attr dim INT 2
in Index int64 [2] 4 3
in Out@GRAD float64 [1, 1, 2] 0.2 0.4
in X float64 [1, 1, 5] -0.676 -0.398 -0.259 -0.12 -0.537
out X@GRAD float64 [1, 1, 5] 0 0 0 0.4 0.2

example float64 2x4x3, dim 1
attr dim INT 1
in Index int64 [2] 0 0
in Out@GRAD float64 [2, 2, 3] 0.3 0.9 -0.2 0.3 0.4 -0.7 -0.5 -0.5 -0.1 0.7 0.5 -0.2
in X float64 [2, 4, 3] 0.24 0.92 0.16 0.28 0.96 0.84 0.12 0.72 0.76 0.68 0.6 0.44 0.64 0.2 0.48 0.52
  0.4 0.36 0.56 0.88 0.08 0.04 0.32 0.8
out X@GRAD float64 [2, 4, 3] 0.6 1.3 -0.8999999999999999 0*9 0.19999999999999996 0
  -0.30000000000000004 0*9

example float32 1x1x5, dim 2
attr dim INT 2
in Index int64 [2] 4 3
in Out@GRAD float32 [1, 1, 2] 0.2 0.4
in X float32 [1, 1, 5] -0.676 -0.398 -0.259 -0.12 -0.537
out X@GRAD float32 [1, 1, 5] 0 0 0 0.4 0.2
)")

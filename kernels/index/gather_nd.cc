#include "core/operands/any_address.h"
#include "core/shapes.h"
#include "kernels/index/index_args.h"
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

HEDDLE_EXAMPLES(gather_nd, R"(
example float64 4x3
in Index int32 [1] 1
in X float64 [4, 3] 0.23 0.685 0.382 0.306 0.533 0.458 0.079 0.609 0.761 0.837 0.913 0.154
out Out float64 [3] 0.306 0.533 0.458

example float32 2x3
in Index int64 [2, 1] 1 0
in X float32 [2, 3] 0.49483764 0.3395095 0.61942935 0.97752964 0.09643308 0.7442062
out Out float32 [2, 3] 0.97752964 0.09643308 0.7442062 0.49483764 0.3395095 0.61942935

example int64 3
in Index int32 [2, 1] 1 2
in X int64 [3] 8 -7 -1
out Out int64 [2] -7 -1

example float32 4
in Index int32 [1, 1] 2
in X float32 [4] -0.62 -0.34 -0.06 0.22
out Out float32 [1] -0.06

example bool 4x3
in Index int32 [1] 1
in X bool [4, 3] 0 0 0 1 1 0 1 0 1 0 1 0
out Out bool [3] 1 1 0

example complex64 4x3
in Index int32 [1] 1
in X complex64 [4, 3] 0.23+0.8j 0.685+0.3j 0.382+0.5j 0.306-0.7j 0.533-0.8j 0.458+0.6j 0.079-0.3j
  0.609+0.1j 0.761-0.5j 0.837+0.1j 0.913-0.2j 0.154+0.4j
out Out complex64 [3] 0.306-0.7j 0.533-0.8j 0.458+0.6j
)")

HEDDLE_EXAMPLES(gather_nd_grad, R"(
example float64 4
in Index int32 [1, 1] 2
in Out@GRAD float64 [1] 0.3
in X float64 [4] -0.62 -0.34 -0.06 0.22
out X@GRAD float64 [4] 0 0 0.3 0

example float64 4x4
in Index int32 [2] 1 2
in Out@GRAD float64 [] -0.2
in X float64 [4, 4] 18.9 76.5 30.4 24.7 7.4 41.9 70.7 65 59.2 36.2 53.5 47.7 82.3 88 93.8 13.1
out X@GRAD float64 [4, 4] 0*6 -0.2 0*9

example int64 3x1
in Index int64 [3, 1] 0 0 0
in Out@GRAD float64 [3] 0.1 -0.4 -0.2
in X float64 [1] 0.195
out X@GRAD float64 [1] -0.5

example float32 4
in Index int32 [1, 1] 2
in Out@GRAD float32 [1] 0.3
in X float32 [4] -0.62 -0.34 -0.06 0.22
out X@GRAD float32 [4] 0 0 0.3 0

example bool 4
in Index int32 [1, 1] 2
in Out@GRAD bool [1] 1
in X bool [4] 1*4
out X@GRAD bool [4] 0 0 1 0
)")

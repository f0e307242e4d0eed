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

HEDDLE_EXAMPLES(index_sample, R"(
example int64 1x5
in Index int64 [1, 5] 4 1 0 1 0
in X float32 [1, 5] 0.06 -0.25 -0.56 0.68 0.37
out Out float32 [1, 5] 0.37 -0.25 0.06 -0.25 0.06

example int32 4x4
in Index int32 [4, 4] 2 1 1 0 0 2 1 1 1 2 2 0 2 1 1 0
in X float64 [4, 3] 0.538 0.691 0.308 0.384 0.921 0.078 0.154 0.461 0.768 0.614 0.231 0.845
out Out float64 [4, 4] 0.308 0.691 0.691 0.538 0.384 0.078 0.921 0.921 0.461 0.768 0.768 0.154 0.845
  0.231 0.231 0.614

example int64 4x3
in Index int64 [4, 3] 0 0 1 0 0 1 0 1 1 1 0 0
in X complex128 [4, 2] -1.9-1.5j 1+0.3j 0-1.1j -0.1+1.3j -1.8+0j 0.2+1.8j 1.3-0.7j -1.9-1.1j
out Out complex128 [4, 3] -1.9-1.5j -1.9-1.5j 1+0.3j 0-1.1j 0-1.1j -0.1+1.3j -1.8+0j 0.2+1.8j
  0.2+1.8j -1.9-1.1j 1.3-0.7j 1.3-0.7j

example int64 1x5, no. 3
in Index int64 [1, 5] 4 1 0 1 0
in X complex64 [1, 5] 0.06+0.8j -0.25+0.3j -0.56+0.5j 0.68-0.7j 0.37-0.8j
out Out complex64 [1, 5] 0.37-0.8j -0.25+0.3j 0.06+0.8j -0.25+0.3j 0.06+0.8j
)")

HEDDLE_EXAMPLES(index_sample_grad, R"(
example float64 3x4
in Index int64 [3, 2] 1 1 0 1 0 2
in Out@GRAD float64 [3, 2] -0.1 -0.4 -0.5 0.8 -0.6 0.9
in X float64 [3, 4] 0.85 -0.74 0.13 0.71 0.56 -0.45 -0.16 -0.02 0.42 -0.31 -0.6 0.27
out X@GRAD float64 [3, 4] 0 -0.5 0 0 -0.5 0.8 0 0 -0.6 0 0.9 0

example int64 4x3
in Index int64 [4, 3] 1 1 1 0 0 0 1 1 0 0 0 1
in Out@GRAD complex128 [4, 3] 0.08333333333333333+0j*12
in X complex128 [4, 2] -1.1+1.2j 0.8+0.5j -0.7-1.5j -1.6+1.8j 0.9-0.6j 1.7-0.6j 1-1.6j 1.4+0.4j
out X@GRAD complex128 [4, 2] 0+0j 0.25+0j 0.25+0j 0+0j 0.08333333333333333+0j 0.16666666666666666+0j
  0.16666666666666666+0j 0.08333333333333333+0j

example int32 4x3
in Index int32 [4, 3] 1*4 0 1 0 1 0 1 0 1
in Out@GRAD float64 [4, 3] 0 -0.9 0.3 -0.7 -0.7 0.6 0 -0.2 0.2 -0 -0.3 -0.7
in X float64 [4, 2] -0.29 0.04 -0.62 -0.12 0.21 0.37 0.54 -0.45
out X@GRAD float64 [4, 2] 0 -0.6000000000000001 -0.7 -0.09999999999999998 0.2 -0.2 -0.3 -0.7

example float32 3x4
in Index int64 [3, 2] 1 1 0 1 0 2
in Out@GRAD float32 [3, 2] -0.1 -0.4 -0.5 0.8 -0.6 0.9
in X float32 [3, 4] 0.85 -0.74 0.13 0.71 0.56 -0.45 -0.16 -0.02 0.42 -0.31 -0.6 0.27
out X@GRAD float32 [3, 4] 0 -0.5 0 0 -0.5 0.8 0 0 -0.6 0 0.9 0
)")

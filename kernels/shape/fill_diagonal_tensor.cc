// fill_diagonal_tensor: X with a diagonal of two axes replaced by Y.
#include "core/shapes.h"
#include "kernels/strided/index_diagonal.h"

namespace heddle {
namespace {

// --- fill_diagonal_tensor ---

Result<Diagonal> FilledOf(const OpContext& ctx, const Shape& x) {
  return MakeDiagonal(x, ctx.Int("dim1"), ctx.Int("dim2"), ctx.Int("offset"));
}

Status FillTensor(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Tensor& y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, FilledOf(ctx, x.shape()));
  const Shape expected = DiagonalShape(x.shape(), d);
  if (y.numel() != expected.numel() || y.dtype() != x.dtype())
    return InvalidArgument("'Y' (", Name(y.dtype()), " ", y.shape().ToString(),
                           ") does not fit the diagonal of 'X' (", Name(x.dtype()), " ",
                           expected.ToString(), ")");
  CopyBytes(ctx, x.raw(), out.mutable_raw(), out.bytes());
  DiagonalCopy(x.shape(), d, SizeOf(x.dtype()), false).Run(ctx, y.raw(), out.mutable_raw());
  return Status::Ok();
}

Status FillTensorGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, FilledOf(ctx, grad.shape()));
  Tensor zeros = ctx.Scratch(grad.dtype(), DiagonalShape(grad.shape(), d));
  ZeroBytes(ctx, zeros.mutable_raw(), zeros.bytes());
  CopyBytes(ctx, grad.raw(), out.mutable_raw(), out.bytes());
  DiagonalCopy(grad.shape(), d, SizeOf(grad.dtype()), false)
      .Run(ctx, zeros.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fill_diagonal_tensor) {
  op.Doc("X with a diagonal of dim1 and dim2 replaced by Y.")
      .Input("X")
      .Input("Y")
      .Output("Out")
      .Attr("offset", 0)
      .Attr("dim1", 0)
      .Attr("dim2", 1)
      .Inplace("X", "Out")
      .InferShape(SameShape)
      .AnyKernel(FillTensor);
}

HEDDLE_OP(fill_diagonal_tensor_grad) {
  op.Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("offset", 0)
      .Attr("dim1", 0)
      .Attr("dim2", 1)
      .Inplace("Out@GRAD", "X@GRAD")
      .InferShape(SameShape)
      .AnyKernel(FillTensorGrad);
}

HEDDLE_EXAMPLES(fill_diagonal_tensor, R"(
example float32 4x4, dim1 1, dim2 0
attr dim1 INT 1
attr dim2 INT 0
in X float32 [4, 4] 0.635 0.578 0.35 0.464 0.521 0.407 0.864 0.75 0.178 0.692 0.121 0.807 0.921
  0.293 0.236 0.064
in Y float32 [1, 4] 0.333 0.496 0.658 0.17
out Out float32 [4, 4] 0.333 0.578 0.35 0.464 0.521 0.496 0.864 0.75 0.178 0.692 0.658 0.807 0.921
  0.293 0.236 0.17

example float64 4x4
in X float64 [4, 4] 0.362 0.131 0.592 0.707 0.535 0.823 0.938 0.074 0.477 0.65 0.88 0.765 0.247
  0.304 0.189 0.419
in Y float64 [4] 0.405 0.705 0.256 0.555
out Out float64 [4, 4] 0.405 0.131 0.592 0.707 0.535 0.705 0.938 0.074 0.477 0.65 0.256 0.765 0.247
  0.304 0.189 0.555

example float16 4x4
in X float16 [4, 4] 0.527 0.293 0.235 0.118 0.702 0.41 0.877 0.059 0.936 0.585 0.76 0.352 0.819
  0.468 0.176 0.644
in Y float16 [1, 4] 0.398 0.578 0.757 0.219
out Out float16 [4, 4] 0.398 0.293 0.235 0.118 0.702 0.578 0.877 0.059 0.936 0.585 0.757 0.352 0.819
  0.468 0.176 0.219

example int16 4x4
in X int16 [4, 4] -107 -118 -115 -107 -74 -83 -119 -124 -125 0 -67 -105 -19 -98 -128 -36
in Y int16 [1, 4] -68 -72 -85 -82
out Out int16 [4, 4] -68 -118 -115 -107 -74 -72 -119 -124 -125 0 -85 -105 -19 -98 -128 -82

example int32 4x4, dim1 1, dim2 0
attr dim1 INT 1
attr dim2 INT 0
in X int32 [4, 4] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1
in Y int32 [1, 4] 0*4
out Out int32 [4, 4] 0 1 0 0 1 0 0 1 0 1 0 1 0 1 0 0

example int64 4x4, dim1 1, dim2 0
attr dim1 INT 1
attr dim2 INT 0
in X int64 [4, 4] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1
in Y int64 [1, 4] 0*4
out Out int64 [4, 4] 0 1 0 0 1 0 0 1 0 1 0 1 0 1 0 0

example bool 4x4, dim1 1, dim2 0
attr dim1 INT 1
attr dim2 INT 0
in X bool [4, 4] 0 0 0 1 1 0 1 0 1 0 1 0 0 0 1 1
in Y bool [1, 4] 0 1 1 0
out Out bool [4, 4] 0 0 0 1*4 0 1 0 1 0 0 0 1 0

example complex64 4x4, dim1 1, dim2 0
attr dim1 INT 1
attr dim2 INT 0
in X complex64 [4, 4] 0.635+0.8j 0.578+0.3j 0.35+0.5j 0.464-0.7j 0.521-0.8j 0.407+0.6j 0.864-0.3j
  0.75+0.1j 0.178-0.5j 0.692+0.1j 0.121-0.2j 0.807+0.4j 0.921+0.7j 0.293+0.2j 0.236-0.4j 0.064-0.4j
in Y complex64 [1, 4] 0.333+0.4j 0.496-0.2j 0.658-0.9j 0.17+0.5j
out Out complex64 [4, 4] 0.333+0.4j 0.578+0.3j 0.35+0.5j 0.464-0.7j 0.521-0.8j 0.496-0.2j 0.864-0.3j
  0.75+0.1j 0.178-0.5j 0.692+0.1j 0.658-0.9j 0.807+0.4j 0.921+0.7j 0.293+0.2j 0.236-0.4j 0.17+0.5j
)")

HEDDLE_EXAMPLES(fill_diagonal_tensor_grad, R"(
example float64 2x4x3, dim1 2, offset -3
attr dim1 INT 2
attr offset LONG -3
in Out@GRAD float64 [2, 4, 3] -0.8 0.9 -0 -0.5 0.1 -0.4 0.7 -0.9 -0.8 0.5 -0.9 0.6 -1 0.2 0.6 0.8 1
  -0 -0.3 0.7 -0.2 0.3 -1 0.6
out X@GRAD float64 [2, 4, 3] -0.8 0.9 -0 -0.5 0.1 -0.4 0.7 -0.9 -0.8 0.5 -0.9 0.6 -1 0.2 0.6 0.8 1
  -0 -0.3 0.7 -0.2 0.3 -1 0.6

example float64 4x4
in Out@GRAD float64 [4, 4] -0.8 0.9 0.5 -0.3 0.4 0.6 0.3 -0.2 0.4 -0.5 -0.5 -1 -0.8 -0.4 0.3 -0.4
out X@GRAD float64 [4, 4] 0 0.9 0.5 -0.3 0.4 0 0.3 -0.2 0.4 -0.5 0 -1 -0.8 -0.4 0.3 0

example float32 4x4
in Out@GRAD float32 [4, 4] -0.8 0.9 0.5 -0.3 0.4 0.6 0.3 -0.2 0.4 -0.5 -0.5 -1 -0.8 -0.4 0.3 -0.4
out X@GRAD float32 [4, 4] 0 0.9 0.5 -0.3 0.4 0 0.3 -0.2 0.4 -0.5 0 -1 -0.8 -0.4 0.3 0
)")

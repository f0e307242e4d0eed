// diagonal, diag_embed, diag_v2 and fill_diagonal_tensor.
#include <algorithm>

#include "core/shapes.h"
#include "kernels/strided/index_diagonal.h"
#include "kernels/strided/index_pad.h"

namespace heddle {
namespace {

// --- diagonal ---

Result<Diagonal> Of(const OpContext& ctx, const Shape& x) {
  return MakeDiagonal(x, ctx.Int("axis1"), ctx.Int("axis2"), ctx.Int("offset"));
}

Status DiagonalOpShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("Input");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, Of(ctx, x));
  ctx.SetOut("Out", DiagonalShape(x, d), ctx.InDType("Input"));
  return Status::Ok();
}

Status DiagonalOp(KernelContext& ctx) {
  const Tensor& x = ctx.In("Input");
  HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, Of(ctx, x.shape()));
  DiagonalCopy(x.shape(), d, SizeOf(x.dtype()), true)
      .Run(ctx, x.raw(), ctx.Out("Out").mutable_raw());
  return Status::Ok();
}

// Puts `part` on a diagonal of `out`, which is zero elsewhere.
Status Embed(const KernelContext& ctx, const Tensor& part, const Diagonal& d, Tensor& out) {
  const Shape expected = DiagonalShape(out.shape(), d);
  if (expected.numel() != part.numel() || part.dtype() != out.dtype())
    return InvalidArgument("a tensor of shape ", part.shape().ToString(),
                           " does not fit the diagonal, which has the shape ", expected.ToString());
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  DiagonalCopy(out.shape(), d, SizeOf(out.dtype()), false).Run(ctx, part.raw(), out.mutable_raw());
  return Status::Ok();
}

Status DiagonalOpGrad(KernelContext& ctx) {
  Tensor& out = ctx.Out("Input@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, Of(ctx, out.shape()));
  return Embed(ctx, ctx.In("Out@GRAD"), d, out);
}

// --- diag_embed ---

Status EmbedShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("Input");
  if (!out.known_rank()) return ctx.Defer();
  if (out.rank() == 0 || out.rank() == Shape::kMaxRank)
    return InvalidArgument("'Input' of shape ", out.ToString(), " cannot be put on a diagonal");
  const int64_t length = out.dim(-1), offset = ctx.Int("offset");
  const int64_t size = length < 0 ? -1 : length + (offset < 0 ? -offset : offset);
  out.erase(out.rank() - 1);
  HEDDLE_ASSIGN_OR_RETURN(const int a, NormalAxis(ctx.Int("dim1"), out.rank() + 2));
  HEDDLE_ASSIGN_OR_RETURN(const int b, NormalAxis(ctx.Int("dim2"), out.rank() + 2));
  if (a == b) return InvalidArgument("'dim1' and 'dim2' must differ");
  out.insert(std::min(a, b), size);
  out.insert(std::max(a, b), size);
  ctx.SetOut("Out", out, ctx.InDType("Input"));
  return Status::Ok();
}

Status DiagEmbed(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, MakeDiagonal(out.shape(), ctx.Int("dim1"),
                                                         ctx.Int("dim2"), ctx.Int("offset")));
  return Embed(ctx, ctx.In("Input"), d, out);
}

// --- diag_v2: vector to matrix, matrix to vector ---

Status DiagShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  const int64_t offset = ctx.Int("offset");
  if (x.rank() == 2) {
    HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, MakeDiagonal(x, 0, 1, offset));
    ctx.SetOut("Out", Shape{d.length}, ctx.InDType("X"));
    return Status::Ok();
  }
  if (x.rank() > 2)
    return InvalidArgument("'X' must be a vector or a matrix, not of shape ", x.ToString());
  const int64_t length = x.rank() == 0 ? 1 : x[0];
  const int64_t size = length < 0 ? -1 : length + (offset < 0 ? -offset : offset);
  ctx.SetOut("Out", Shape{size, size}, ctx.InDType("X"));
  return Status::Ok();
}

Status Diag(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  const bool to_matrix = x.rank() < 2;
  const Shape& matrix = to_matrix ? out.shape() : x.shape();
  HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, MakeDiagonal(matrix, 0, 1, ctx.Int("offset")));
  if (to_matrix) HEDDLE_RETURN_IF_ERROR(FillElements(ctx, ctx.Float("padding_value"), out));
  DiagonalCopy(matrix, d, SizeOf(x.dtype()), !to_matrix).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

Status DiagGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  const bool from_matrix = out.rank() < 2;
  if (from_matrix && grad.rank() != 2)
    return InvalidArgument("'Out@GRAD' must be a matrix, not of shape ", grad.shape().ToString());
  HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, MakeDiagonal(from_matrix ? grad.shape() : out.shape(),
                                                         0, 1, ctx.Int("offset")));
  if (!from_matrix) return Embed(ctx, grad, d, out);
  if (d.length != out.numel())
    return InvalidArgument("'Out@GRAD' of shape ", grad.shape().ToString(), " does not fit X");
  DiagonalCopy(grad.shape(), d, SizeOf(grad.dtype()), true).Run(ctx, grad.raw(), out.mutable_raw());
  return Status::Ok();
}

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

HEDDLE_OP(diagonal) {
  op.Doc("A diagonal of two axes of Input, as the last axis.")
      .Input("Input")
      .Output("Out")
      .Attr("offset", 0)
      .Attr("axis1", 0)
      .Attr("axis2", 1)
      .InferShape(DiagonalOpShape)
      .AnyKernel(DiagonalOp);
}
HEDDLE_OP(diagonal_grad) {
  op.Input("Out@GRAD")
      .Input("Input", kNoBuffer)
      .Output("Input@GRAD")
      .Attr("offset", 0)
      .Attr("axis1", 0)
      .Attr("axis2", 1)
      .InferShape(GradLikeInputs)
      .AnyKernel(DiagonalOpGrad);
}
HEDDLE_OP(diag_embed) {
  op.Doc("Input's last axis as a diagonal of two new axes.")
      .Input("Input")
      .Output("Out")
      .Attr("offset", 0)
      .Attr("dim1", -2)
      .Attr("dim2", -1)
      .InferShape(EmbedShape)
      .AnyKernel(DiagEmbed);
}
HEDDLE_OP(diag_v2) {
  op.Doc("The diagonal of a matrix, or a matrix with X as its diagonal.")
      .Input("X")
      .Output("Out")
      .Attr("offset", 0)
      .Attr("padding_value", 0.0)
      .InferShape(DiagShape)
      .AnyKernel(Diag);
}
HEDDLE_OP(diag_v2_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Output("X@GRAD")
      .Attr("offset", 0)
      .InferShape(GradLikeInputs)
      .AnyKernel(DiagGrad);
}
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

HEDDLE_EXAMPLES(diagonal, R"(
example float32 3x5
in Input float32 [3, 5] -0.42 0.56 -0.2 -0.31 -0.63 0.02 0.45 0.34 -0.09 0.23 0.13 0.67 0.78 0.89
  -0.53
out Out float32 [3] -0.42 0.45 0.78

example float32 2x1x3x3
in Input float32 [2, 1, 3, 3] 0.86 0.67 0.21 0.58 -0.16 0.49 0.76 -0.63 -0.35 -0.44 -0.72 0.11 0.3
  -0.54 0.39 -0.26 0.02 -0.07
out Out float32 [3, 3, 1] 0.86 0.67 0.21 0.58 -0.16 0.49 0.76 -0.63 -0.35

example float64 3x4x2
in Input float64 [3, 4, 2] 0.97 0.73 0.5 -1.6 -0.43 1.2 0.27 -1.83 -1.37 -2.53 -0.2 -3 -2.3 -1.13
  -2.07 -2.76 1.43 2.13 1.67 -0.9 2.37 0.03 -0.67 1.9
out Out float64 [2, 3] 0.97 -0.2 2.37 0.73 -3 0.03

example float32 3x3x4
in Input float32 [3, 3, 4] 0.872 0.186 0.477 0.107 0.74 0.925 0.318 0.582 0.397 0.846 0.503 0.45
  0.556 0.16 0.345 0.081 0.608 0.529 0.952 0.661 0.292 0.424 0.714 0.133 0.265 0.239 0.371 0.688
  0.899 0.793 0.054 0.767 0.82 0.028 0.213 0.635
out Out float32 [4, 3] 0.872 0.608 0.82 0.186 0.529 0.028 0.477 0.952 0.213 0.107 0.661 0.635

example int32 3x5
in Input int32 [3, 5] 0*15
out Out int32 [3] 0 0 0

example int64 3x5
in Input int64 [3, 5] 0*15
out Out int64 [3] 0 0 0

example bool 3x5
in Input bool [3, 5] 0 0 0 1 1 0 1 0 1 0 1 0 0 0 1
out Out bool [3] 0 1 0

example complex64 3x5
in Input complex64 [3, 5] -0.42+0.8j 0.56+0.3j -0.2+0.5j -0.31-0.7j -0.63-0.8j 0.02+0.6j 0.45-0.3j
  0.34+0.1j -0.09-0.5j 0.23+0.1j 0.13-0.2j 0.67+0.4j 0.78+0.7j 0.89+0.2j -0.53-0.4j
out Out complex64 [3] -0.42+0.8j 0.45-0.3j 0.78+0.7j
)")

HEDDLE_EXAMPLES(diagonal_grad, R"(
example float64 3x5
in Input float64 [3, 5] -0.09 -0.42 0.67 0.34 0.02 0.89 -0.2 0.45 0.23 0.56 -0.53 -0.63 0.78 0.13
  -0.31
in Out@GRAD float64 [3] 0 0.4 -0.5
out Input@GRAD float64 [3, 5] 0*6 0.4 0*5 -0.5 0 0

example float64 2x1x3x3
in Input float64 [2, 1, 3, 3] 0.3 -0.72 0.76 -0.44 -0.16 -0.26 0.58 0.39 0.67 -0.35 -0.63 0.11 0.49
  -0.54 0.21 0.02 0.86 -0.07
in Out@GRAD float64 [3, 3, 1] -0 -0.5 -0.5 -0.8 0.1 -1 -0.7 -0 -0.8
out Input@GRAD float64 [2, 1, 3, 3] -0 -0.5 -0.5 -0.8 0.1 -1 -0.7 -0 -0.8 0*9

example float64 3x4x2
in Input float64 [3, 4, 2] -0.51 -0.72 0.73 1.56 -1.35 -2.59 0.32 -0.31 -0.1 0.52 -2.18 -1.97 -1.76
  1.35 -0.93 2.18 1.15 0.11 -1.55 -1.14 1.77 1.98 -2.38 0.94
in Out@GRAD float64 [2, 3] 0.8 0.6 -0.2 -0 -1 0.7
out Input@GRAD float64 [3, 4, 2] 0.8 -0 0*8 0.6 -1 0*8 -0.2 0.7 0 0

example float32 3x5
in Input float32 [3, 5] -0.09 -0.42 0.67 0.34 0.02 0.89 -0.2 0.45 0.23 0.56 -0.53 -0.63 0.78 0.13
  -0.31
in Out@GRAD float32 [3] 0 0.4 -0.5
out Input@GRAD float32 [3, 5] 0*6 0.4 0*5 -0.5 0 0
)")

HEDDLE_EXAMPLES(diag_embed, R"(
example float32 3x2, offset 1
attr offset INT 1
in Input float32 [3, 2] -0.22 0.38 -0.02 0.58 -0.43 0.18
out Out float32 [3, 3, 3] 0 -0.22 0 0 0 0.38 0*4 -0.02 0 0 0 0.58 0*4 -0.43 0 0 0 0.18 0 0 0

example float64 3x2, offset 1
attr offset INT 1
in Input float64 [3, 2] -0.22 0.38 -0.02 0.58 -0.43 0.18
out Out float64 [3, 3, 3] 0 -0.22 0 0 0 0.38 0*4 -0.02 0 0 0 0.58 0*4 -0.43 0 0 0 0.18 0 0 0

example int32 3x2, offset 1
attr offset INT 1
in Input int32 [3, 2] 0*6
out Out int32 [3, 3, 3] 0*27

example int64 3x2, offset 1
attr offset INT 1
in Input int64 [3, 2] 0*6
out Out int64 [3, 3, 3] 0*27
)")

HEDDLE_EXAMPLES(diag_v2, R"(
example float32 5, padding_value 1.5
attr padding_value FLOAT 1.5
in X float32 [5] -0.18 -0.37 -0.57 0.22 0.02
out Out float32 [5, 5] -0.18 1.5*5 -0.37 1.5*5 -0.57 1.5*5 0.22 1.5*5 0.02

example float64 4x4
in X float64 [4, 4] 0.525 0.293 0.235 0.119 0.698 0.409 0.872 0.061 0.93 0.582 0.756 0.351 0.814
  0.467 0.177 0.64
out Out float64 [4] 0.525 0.409 0.756 0.64

example float32 1x6
in X float32 [1, 6] -0.62 -0.11 0.14 0.39 0.64 -0.37
out Out float32 [1] -0.62

example int32 4x4
in X int32 [4, 4] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1
out Out int32 [4] 1*4

example int64 4x4
in X int64 [4, 4] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1
out Out int64 [4] 1*4

example float16 4x4
in X float16 [4, 4] 0.525 0.293 0.235 0.119 0.698 0.409 0.872 0.061 0.93 0.582 0.756 0.351 0.814
  0.467 0.177 0.64
out Out float16 [4] 0.525 0.409 0.756 0.64
)")

HEDDLE_EXAMPLES(diag_v2_grad, R"(
example float64 1x6
in Out@GRAD float64 [1] -0.4
in X float64 [1, 6] -0.62 0.39 -0.37 0.14 0.64 -0.11
out X@GRAD float64 [1, 6] -0.4 0*5

example float32 1x6
in Out@GRAD float32 [1] -0.4
in X float32 [1, 6] -0.62 0.39 -0.37 0.14 0.64 -0.11
out X@GRAD float32 [1, 6] -0.4 0*5
)")

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

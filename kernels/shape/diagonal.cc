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

// diag_v2: a vector as the diagonal of a matrix, or the diagonal of a matrix as a vector.
#include "core/shapes.h"
#include "kernels/strided/index_diagonal.h"
#include "kernels/strided/index_pad.h"

namespace heddle {
namespace {

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
  if (!from_matrix) return EmbedDiagonal(ctx, grad, d, out);
  if (d.length != out.numel())
    return InvalidArgument("'Out@GRAD' of shape ", grad.shape().ToString(), " does not fit X");
  DiagonalCopy(grad.shape(), d, SizeOf(grad.dtype()), true).Run(ctx, grad.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

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

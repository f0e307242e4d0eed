// diagonal: a diagonal of two axes.
#include "core/shapes.h"
#include "kernels/strided/index_diagonal.h"

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

Status DiagonalOpGrad(KernelContext& ctx) {
  Tensor& out = ctx.Out("Input@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, Of(ctx, out.shape()));
  return EmbedDiagonal(ctx, ctx.In("Out@GRAD"), d, out);
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

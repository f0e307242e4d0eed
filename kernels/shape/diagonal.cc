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

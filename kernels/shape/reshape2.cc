#include "kernels/index/index_args.h"
#include "kernels/shape/view_op.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// One -1 takes what is left over, 0 copies X's dimension of the same position.
Result<Shape> ResolveShape(const Shape& x, const IntArgs& want) {
  if (want.n > Shape::kMaxRank)
    return InvalidArgument("'shape' has ", want.n, " dimensions; at most ", Shape::kMaxRank,
                           " are supported");
  Shape out;
  int open = -1;
  int64_t rest = 1;
  bool known = x.is_static();
  for (int i = 0; i < want.n; ++i) {
    int64_t d = want[i];
    if (d == -1) {
      if (open >= 0) return InvalidArgument("'shape' has more than one -1");
      open = i;
    } else if (d == 0) {
      if (x.known_rank() && i >= x.rank())
        return InvalidArgument("dimension ", i, " of 'shape' is 0, but X has shape ", x.ToString());
      d = x.known_rank() ? x[i] : -1;
      known = known && d >= 0;
    } else if (d < 0) {
      return InvalidArgument("dimension ", i, " of 'shape' is ", d,
                             "; expected -1, 0 or a positive number");
    }
    out.push_back(d);
    if (i != open) rest *= d;
  }
  if (!known) return out;
  const int64_t numel = x.numel();
  if (open >= 0) out[open] = rest == 0 ? 0 : numel / rest;
  if (out.numel() != numel)
    return InvalidArgument("X of shape ", x.ToString(), " (", numel,
                           " elements) cannot be given the shape ", Shape(want.span()).ToString());
  return out;
}

Status ReshapeShapes(ShapeContext& ctx, const IntArgs& want) {
  if (want.n < 0) {
    ctx.SetOut("Out", Shape::Unknown(), ctx.InDType("X"));
    return Status::Ok();
  }
  Shape out;
  if (want.known) {
    HEDDLE_ASSIGN_OR_RETURN(out, ResolveShape(ctx.InShape("X"), want));
  } else {
    for (int i = 0; i < want.n; ++i) out.push_back(want[i] > 0 ? want[i] : -1);
  }
  return SetViewOut(ctx, out);
}

Status ReshapeShape(ShapeContext& ctx) {
  IntArgs want;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "ShapeTensor", "Shape", "shape", &want));
  return ReshapeShapes(ctx, want);
}

// The gradient of the gradient: DDX in the shape of DOut.
Status DoubleGradShape(ShapeContext& ctx) {
  ctx.SetOut("DDOut", ctx.InShape("DOut"), ctx.InDType("DDX"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(reshape2) {
  op.Doc("X with another shape (0: keep that dimension, -1: whatever is left).")
      .Input("X")
      .Input("Shape", kOptional | kShapeValue)
      .Input("ShapeTensor", kOptional | kList | kShapeValue)
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("shape", Ints{})
      .View("X", "Out")
      .InferShape(ReshapeShape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(reshape2_grad) {
  op.Input("Out@GRAD")
      .Input("XShape", kNoBuffer)
      .Input("Shape", kOptional | kNoBuffer)
      .Input("ShapeTensor", kOptional | kList | kNoBuffer)
      .Output("X@GRAD")
      .View("Out@GRAD", "X@GRAD")
      .InferShape(GradFromXShape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(reshape2_grad_grad) {
  op.Input("DDX")
      .Input("DOut", kNoBuffer)
      .Output("DDOut")
      .View("DDX", "DDOut")
      .InferShape(DoubleGradShape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(reshape) {
  op.Doc("reshape2 without XShape.")
      .Input("X")
      .Input("Shape", kOptional | kShapeValue)
      .Input("ShapeTensor", kOptional | kList | kShapeValue)
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("shape", Ints{})
      .View("X", "Out")
      .InferShape(ReshapeShape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(reshape_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Out", kOptional | kNoBuffer)
      .Input("Shape", kOptional | kNoBuffer)
      .Input("ShapeTensor", kOptional | kList | kNoBuffer)
      .Output("X@GRAD")
      .View("Out@GRAD", "X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(CopyFirst);
}

HEDDLE_EXAMPLES(reshape2, R"(
example float32 4x3, shape 4 -1 -1
attr shape INTS [4, -1, -1]
in ShapeTensor int32 [1] 4
in ShapeTensor int32 [1] -1
in ShapeTensor int32 [1] 3
in X float32 [4, 3] 0.31 0.92 0.234 0.539 0.844 0.387 0.158 0.082 0.463 0.767 0.615 0.691
out Out float32 [4, 1, 3] 0.31 0.92 0.234 0.539 0.844 0.387 0.158 0.082 0.463 0.767 0.615 0.691
out XShape ?

example int64 2, shape 2 1
attr shape INTS [2, 1]
in X int64 [2] -5 8
out Out int64 [2, 1] -5 8
out XShape ?

example int16 4x3x2, shape 2 2 3 2
attr shape INTS [2, 2, 3, 2]
in X int16 [4, 3, 2] 0*24
out Out int16 [2, 2, 3, 2] 0*24
out XShape ?

example float32 3x3, shape 1 9
attr shape INTS [1, 9]
in X float32 [3, 3] 0.35 -0.01 -0.19 0.71 -0.73 -0.55 0.17 0.53 -0.37
out Out float32 [1, 9] 0.35 -0.01 -0.19 0.71 -0.73 -0.55 0.17 0.53 -0.37
out XShape ?

example float64 3x3, shape 1 9
attr shape INTS [1, 9]
in X float64 [3, 3] 0.35 -0.01 -0.19 0.71 -0.73 -0.55 0.17 0.53 -0.37
out Out float64 [1, 9] 0.35 -0.01 -0.19 0.71 -0.73 -0.55 0.17 0.53 -0.37
out XShape ?

example bool 3x3, shape 1 9
attr shape INTS [1, 9]
in X bool [3, 3] 0 0 0 1 1 0 1 0 1
out Out bool [1, 9] 0 0 0 1 1 0 1 0 1
out XShape ?

example complex64 3x3, shape 1 9
attr shape INTS [1, 9]
in X complex64 [3, 3] 0.35+0.8j -0.01+0.3j -0.19+0.5j 0.71-0.7j -0.73-0.8j -0.55+0.6j 0.17-0.3j
  0.53+0.1j -0.37-0.5j
out Out complex64 [1, 9] 0.35+0.8j -0.01+0.3j -0.19+0.5j 0.71-0.7j -0.73-0.8j -0.55+0.6j 0.17-0.3j
  0.53+0.1j -0.37-0.5j
out XShape ?

example bfloat16 3x3, shape 1 9
attr shape INTS [1, 9]
in X bfloat16 [3, 3] 0.35 -0.01 -0.19 0.71 -0.73 -0.55 0.17 0.53 -0.37
out Out bfloat16 [1, 9] 0.35 -0.01 -0.19 0.71 -0.73 -0.55 0.17 0.53 -0.37
out XShape ?

example float16 3x3, shape 1 9
attr shape INTS [1, 9]
in X float16 [3, 3] 0.35 -0.01 -0.19 0.71 -0.73 -0.55 0.17 0.53 -0.37
out Out float16 [1, 9] 0.35 -0.01 -0.19 0.71 -0.73 -0.55 0.17 0.53 -0.37
out XShape ?
)")

HEDDLE_EXAMPLES(reshape2_grad, R"(
example float64 12x1
in Out@GRAD float64 [12, 1] -0.6 0.6 0.7 -0.3 -0.5 0.6 0.4 0.3 0.4 -0.8 0.7 -0
in XShape float32 [0, 2, 6] none
out X@GRAD float64 [2, 6] -0.6 0.6 0.7 -0.3 -0.5 0.6 0.4 0.3 0.4 -0.8 0.7 -0

example float64 1x3x1x1
in Out@GRAD float64 [1, 3, 1, 1] -0.6 -0.9 -0.4
in XShape float32 [0, 3] none
out X@GRAD float64 [3] -0.6 -0.9 -0.4

example float64 20
in Out@GRAD float64 [20] -0.4 0.3 0.2 0.6 -0 0.9 1 0.7 -0.6 -0.7 0.2 0.2 0.3 1 -0.3 0.6 0.3 0.1 -0.9
  -0.8
in XShape float32 [0, 4, 5] none
out X@GRAD float64 [4, 5] -0.4 0.3 0.2 0.6 -0 0.9 1 0.7 -0.6 -0.7 0.2 0.2 0.3 1 -0.3 0.6 0.3 0.1
  -0.9 -0.8
)")

HEDDLE_EXAMPLES(reshape2_grad_grad, R"(
example float64 2x3
in DDX float64 [2, 3] 0.147 0.713 0.289 0.572 0.855 0.43
in DOut float64 [3, 2] 0.798 0.6 0.204 0.402 -0.3 0.7
out DDOut float64 [3, 2] 0.147 0.713 0.289 0.572 0.855 0.43

example float64 scalar
in DDX float64 [] 0.227
in DOut float64 [1] 0.227
out DDOut float64 [1] 0.227

example float32 2x3
in DDX float32 [2, 3] 0.147 0.713 0.289 0.572 0.855 0.43
in DOut float32 [6] 0.798 0.6 0.204 0.402 -0.3 0.7
out DDOut float32 [6] 0.147 0.713 0.289 0.572 0.855 0.43
)")

HEDDLE_EXAMPLES(reshape, R"(
example -1 and 0
attr shape INTS [0, -1]
in X float32 [2, 3, 2] -0.65 -0.58 0 0.71 -0.1 -0.86 0.59 -0.01 -0.86 0.23 0.14 -0.06
out Out float32 [2, 6] -0.65 -0.58 0 0.71 -0.1 -0.86 0.59 -0.01 -0.86 0.23 0.14 -0.06

example int32, shape from a tensor
attr shape INTS [0]
in X int32 [2, 3] 7 4 9 0 3 9
in Shape int32 [2] 3 2
out Out int32 [3, 2] 7 4 9 0 3 9

example int32, each dimension from a tensor
attr shape INTS [2, 3]
in X int32 [2, 3] 7 4 9 0 3 9
in ShapeTensor int32 [1] 3
in ShapeTensor int64 [1] -1
out Out int32 [3, 2] 7 4 9 0 3 9
)")

HEDDLE_EXAMPLES(reshape_grad, R"(
example -1 and 0
in Out float64 [2, 6] -0.65 -0.58 0 0.71 -0.1 -0.86 0.59 -0.01 -0.86 0.23 0.14 -0.06
in Out@GRAD float64 [2, 6] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
in X float64 [2, 3, 2] -0.65 -0.58 0 0.71 -0.1 -0.86 0.59 -0.01 -0.86 0.23 0.14 -0.06
out X@GRAD float64 [2, 3, 2] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
)")

#include "kernels/index/index_args.h"
#include "kernels/shape/view_op.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Axes are inserted one after another: each counts in the shape made so far.
Status UnsqueezeShapes(ShapeContext& ctx, const IntArgs& axes) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank() || !axes.known) return ctx.Defer();
  if (x.rank() + axes.n > Shape::kMaxRank)
    return InvalidArgument("X of rank ", x.rank(), " with ", axes.n,
                           " more dimensions has too many; at most ", Shape::kMaxRank,
                           " are supported");
  Shape out = x;
  for (int64_t a : axes.span()) {
    const int64_t axis = a < 0 ? a + out.rank() + 1 : a;
    if (axis < 0 || axis > out.rank())
      return OutOfRange("'axes' holds ", a, "; a dimension cannot be inserted there into ",
                        out.ToString());
    out.insert(static_cast<int>(axis), 1);
  }
  return SetViewOut(ctx, out);
}

Status Unsqueeze2Shape(ShapeContext& ctx) {
  IntArgs axes;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "AxesTensorList", "AxesTensor", "axes", &axes));
  return UnsqueezeShapes(ctx, axes);
}

// Both versions; the second one has XShape, from which its gradient takes the shape.
void DefineUnsqueeze(OpDef& op, const char* doc) {
  op.Doc(doc)
      .Input("X")
      .Input("AxesTensor", kOptional | kShapeValue)
      .Input("AxesTensorList", kOptional | kList | kShapeValue)
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("axes", Ints{})
      .View("X", "Out")
      .InferShape(Unsqueeze2Shape)
      .AnyKernel(CopyFirst);
}

void DefineUnsqueezeGrad(OpDef& op, const char* shape_from, InferShapeFn shape) {
  op.Input("Out@GRAD")
      .Input(shape_from, kNoBuffer)
      .Input("AxesTensor", kOptional | kNoBuffer)
      .Input("AxesTensorList", kOptional | kList | kNoBuffer)
      .Output("X@GRAD")
      .View("Out@GRAD", "X@GRAD")
      .InferShape(shape)
      .AnyKernel(CopyFirst);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(unsqueeze2) { DefineUnsqueeze(op, "X with dimensions of 1 inserted at `axes`."); }
HEDDLE_OP(unsqueeze2_grad) { DefineUnsqueezeGrad(op, "XShape", GradFromXShape); }
HEDDLE_OP(unsqueeze) { DefineUnsqueeze(op, "unsqueeze2 without XShape."); }
HEDDLE_OP(unsqueeze_grad) { DefineUnsqueezeGrad(op, "X", GradLikeInputs); }

HEDDLE_EXAMPLES(unsqueeze2, R"(
example float64 3x4
in AxesTensorList int32 [1] -1
in X float64 [3, 4] 0.767 0.92 0.082 0.387 0.539 0.615 0.31 0.844 0.158 0.234 0.691 0.463
out Out float64 [3, 4, 1] 0.767 0.92 0.082 0.387 0.539 0.615 0.31 0.844 0.158 0.234 0.691 0.463
out XShape ?

example float64 3x4, no. 2
in AxesTensor int32 [1] -1
in X float64 [3, 4] 0.844 0.767 0.539 0.691 0.615 0.082 0.387 0.92 0.234 0.31 0.158 0.463
out Out float64 [3, 4, 1] 0.844 0.767 0.539 0.691 0.615 0.082 0.387 0.92 0.234 0.31 0.158 0.463
out XShape ?

example int64 2, axes -1 -2
attr axes INTS [-1, -2]
in X int64 [2] -3 8
out Out int64 [2, 1, 1] -3 8
out XShape ?

example float64 scalar, axes 0 1 2
attr axes INTS [0, 1, 2]
in X float64 [] 0.227
out Out float64 [1, 1, 1] 0.227
out XShape ?

example float32 3x4
in AxesTensorList int32 [1] -1
in X float32 [3, 4] 0.767 0.92 0.082 0.387 0.539 0.615 0.31 0.844 0.158 0.234 0.691 0.463
out Out float32 [3, 4, 1] 0.767 0.92 0.082 0.387 0.539 0.615 0.31 0.844 0.158 0.234 0.691 0.463
out XShape ?

example bool 3x4
in AxesTensorList int32 [1] -1
in X bool [3, 4] 0 0 0 1 1 0 1 0 1 0 1 0
out Out bool [3, 4, 1] 0 0 0 1 1 0 1 0 1 0 1 0
out XShape ?

example complex64 3x4
in AxesTensorList int32 [1] -1
in X complex64 [3, 4] 0.767+0.8j 0.92+0.3j 0.082+0.5j 0.387-0.7j 0.539-0.8j 0.615+0.6j 0.31-0.3j
  0.844+0.1j 0.158-0.5j 0.234+0.1j 0.691-0.2j 0.463+0.4j
out Out complex64 [3, 4, 1] 0.767+0.8j 0.92+0.3j 0.082+0.5j 0.387-0.7j 0.539-0.8j 0.615+0.6j
  0.31-0.3j 0.844+0.1j 0.158-0.5j 0.234+0.1j 0.691-0.2j 0.463+0.4j
out XShape ?

example bfloat16 3x4
in AxesTensorList int32 [1] -1
in X bfloat16 [3, 4] 0.766 0.92 0.082 0.387 0.54 0.613 0.31 0.844 0.158 0.234 0.69 0.463
out Out bfloat16 [3, 4, 1] 0.766 0.92 0.082 0.387 0.54 0.613 0.31 0.844 0.158 0.234 0.69 0.463
out XShape ?
)")

HEDDLE_EXAMPLES(unsqueeze, R"(
example axes 0 2
attr axes INTS [0, 2]
in X float32 [3, 2] 0.59 0.13 0.48 -0.49 0.22 0.88
from unsqueeze2 X=X -> Out=Out XShape=shape
attr axes INTS [0, 2]
out Out float32 [1, 3, 1, 2] 0.59 0.13 0.48 -0.49 0.22 0.88

example int64, negative axis
attr axes INTS [-1]
in X int64 [2, 3] 8 6 3 0 2 7
from unsqueeze2 X=X -> Out=Out XShape=shape
attr axes INTS [-1]
out Out int64 [2, 3, 1] 8 6 3 0 2 7
)")

HEDDLE_EXAMPLES(unsqueeze_grad, R"(
example axes 0 2, float32
attr axes INTS [0, 2]
in X float32 [3, 2] 0.59 0.13 0.48 -0.49 0.22 0.88
in Out@GRAD float32 [1, 3, 1, 2] -0.13 -0.81 0.5 0.61 -0.32 -0.68
from unsqueeze2 X=X -> Out=t XShape=shape
attr axes INTS [0, 2]
from unsqueeze2_grad XShape=shape Out@GRAD=Out@GRAD -> X@GRAD=X@GRAD
attr axes INTS [0, 2]
out X@GRAD float32 [3, 2] -0.13 -0.81 0.5 0.61 -0.32 -0.68

example axes 0 2, float64
attr axes INTS [0, 2]
in X float64 [3, 2] 0.5899999737739563 0.12999999523162842 0.47999998927116394 -0.49000000953674316
  0.2199999988079071 0.8799999952316284
in Out@GRAD float64 [1, 3, 1, 2] 0.73 -0.42 -0.7 -0.78 -0.59 0.42
from unsqueeze2 X=X -> Out=t XShape=shape
attr axes INTS [0, 2]
from unsqueeze2_grad XShape=shape Out@GRAD=Out@GRAD -> X@GRAD=X@GRAD
attr axes INTS [0, 2]
out X@GRAD float64 [3, 2] 0.73 -0.42 -0.7 -0.78 -0.59 0.42
)")

HEDDLE_EXAMPLES(unsqueeze2_grad, R"(
example float64 3x4x1
in AxesTensorList int32 [1] -1
in Out@GRAD float64 [3, 4, 1] -1 0.9 -0.1 0.2 0.7 0.5 0.9 0.7 0.7 0.7 -0.3 -0.6
in XShape float32 [0, 3, 4] none
out X@GRAD float64 [3, 4] -1 0.9 -0.1 0.2 0.7 0.5 0.9 0.7 0.7 0.7 -0.3 -0.6

example float64 1x4x1x2x1x4
in Out@GRAD float64 [1, 4, 1, 2, 1, 4] 0.4 0.2 0.4 -0.2 -0.1 -0.2 0 -0.8 0.9 -0 0.9 -0.4 0.5 -0.4
  -0.4 0.5 -0.3 1 -0.9 0 0.4 -0.4 -0.9 0.3 0 -1 -0.7 0.3 0.7 -0.2 0.5 -0.6
in XShape float32 [0, 4, 1, 2, 4] none
out X@GRAD float64 [4, 1, 2, 4] 0.4 0.2 0.4 -0.2 -0.1 -0.2 0 -0.8 0.9 -0 0.9 -0.4 0.5 -0.4 -0.4 0.5
  -0.3 1 -0.9 0 0.4 -0.4 -0.9 0.3 0 -1 -0.7 0.3 0.7 -0.2 0.5 -0.6

example float64 1x1x2x2
in Out@GRAD float64 [1, 1, 2, 2] -0.7 -0.7 -0.3 0.4
in XShape float32 [0, 1, 2, 2] none
out X@GRAD float64 [1, 2, 2] -0.7 -0.7 -0.3 0.4
)")

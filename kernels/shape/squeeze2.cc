#include "kernels/shape/view_op.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Drops the named dimensions that are 1 (all of them when none is named).
Status SqueezeShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  const Ints& axes = ctx.IntList("axes");
  unsigned named = axes.empty() ? ~0u : 0;
  for (int64_t a : axes) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(a, x.rank()));
    named |= 1u << axis;
  }
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    const bool drop = (named >> i & 1) != 0;
    if (drop && x[i] < 0) return ctx.Defer();  // 1 or not: the rank depends on it
    if (!drop || x[i] != 1) out.push_back(x[i]);
  }
  return SetViewOut(ctx, out);
}

// Both versions; the second one has XShape, from which its gradient takes the shape.
void DefineSqueeze(OpDef& op, const char* doc) {
  op.Doc(doc)
      .Input("X")
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("axes", Ints{})
      .View("X", "Out")
      .InferShape(SqueezeShape)
      .AnyKernel(CopyFirst);
}

void DefineSqueezeGrad(OpDef& op, const char* shape_from, InferShapeFn shape) {
  op.Input("Out@GRAD")
      .Input(shape_from, kNoBuffer)
      .Output("X@GRAD")
      .View("Out@GRAD", "X@GRAD")
      .InferShape(shape)
      .AnyKernel(CopyFirst);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(squeeze2) {
  DefineSqueeze(
      op, "X without the dimensions of `axes` that are 1 (no axes: without any dimension of 1).");
}
HEDDLE_OP(squeeze2_grad) { DefineSqueezeGrad(op, "XShape", GradFromXShape); }
HEDDLE_OP(squeeze) { DefineSqueeze(op, "squeeze2 without XShape."); }
HEDDLE_OP(squeeze_grad) { DefineSqueezeGrad(op, "X", GradLikeInputs); }

HEDDLE_EXAMPLES(squeeze2, R"(
example float64 2x2x2x1, axes -1
attr axes INTS [-1]
in X float64 [2, 2, 2, 1] 1.0218261062764995 0.9758637912293294 1.5764360519375638 0.797391651946743
  1.1634120293502668 1.249770269024182 1.2492486478049603 1.2831924219278332
out Out float64 [2, 2, 2] 1.0218261062764995 0.9758637912293294 1.5764360519375638 0.797391651946743
  1.1634120293502668 1.249770269024182 1.2492486478049603 1.2831924219278332
out XShape ?

example float32 2x3x1x2, axes 2
attr axes INTS [2]
in X float32 [2, 3, 1, 2] 0.602 0.13149999 0.6025 0.5825 0.504 0.563 0.367 0.5625 0.3865 0.4845
  0.661 0.602
out Out float32 [2, 3, 2] 0.602 0.13149999 0.6025 0.5825 0.504 0.563 0.367 0.5625 0.3865 0.4845
  0.661 0.602
out XShape ?

example int32 1x1, axes -2 -1
attr axes INTS [-2, -1]
in X int32 [1, 1] 2
out Out int32 [] 2
out XShape ?

example float64 1x1x1, axes 0 1 2
attr axes INTS [0, 1, 2]
in X float64 [1, 1, 1] 0.227
out Out float64 [] 0.227
out XShape ?

example int64 2x2x2x1, axes -1
attr axes INTS [-1]
in X int64 [2, 2, 2, 1] 1*8
out Out int64 [2, 2, 2] 1*8
out XShape ?

example bool 2x2x2x1, axes -1
attr axes INTS [-1]
in X bool [2, 2, 2, 1] 0 0 0 1 1 0 1 0
out Out bool [2, 2, 2] 0 0 0 1 1 0 1 0
out XShape ?

example complex64 2x2x2x1, axes -1
attr axes INTS [-1]
in X complex64 [2, 2, 2, 1] 1.0218261+0.8j 0.9758638+0.3j 1.576436+0.5j 0.79739165-0.7j
  1.163412-0.8j 1.2497703+0.6j 1.2492486-0.3j 1.2831924+0.1j
out Out complex64 [2, 2, 2] 1.0218261+0.8j 0.9758638+0.3j 1.576436+0.5j 0.79739165-0.7j
  1.163412-0.8j 1.2497703+0.6j 1.2492486-0.3j 1.2831924+0.1j
out XShape ?

example bfloat16 2x2x2x1, axes -1
attr axes INTS [-1]
in X bfloat16 [2, 2, 2, 1] 1.02 0.977 1.58 0.797 1.164 1.25 1.25 1.28
out Out bfloat16 [2, 2, 2] 1.02 0.977 1.58 0.797 1.164 1.25 1.25 1.28
out XShape ?

example float16 2x2x2x1, axes -1
attr axes INTS [-1]
in X float16 [2, 2, 2, 1] 1.021 0.976 1.576 0.7974 1.163 1.25 1.249 1.283
out Out float16 [2, 2, 2] 1.021 0.976 1.576 0.7974 1.163 1.25 1.249 1.283
out XShape ?
)")

HEDDLE_EXAMPLES(squeeze2_grad, R"(
example float64 3x4
in Out@GRAD float64 [3, 4] -0.6 0.6 0.7 -0.3 -0.5 0.6 0.4 0.3 0.4 -0.8 0.7 -0
in XShape float32 [0, 1, 3, 1, 4] none
out X@GRAD float64 [1, 3, 1, 4] -0.6 0.6 0.7 -0.3 -0.5 0.6 0.4 0.3 0.4 -0.8 0.7 -0

example float64 3
in Out@GRAD float64 [3] -0.6 -0.9 -0.4
in XShape float32 [0, 3] none
out X@GRAD float64 [3] -0.6 -0.9 -0.4

example float64 scalar
in Out@GRAD float64 [] 0.1
in XShape float64 [0, 1, 1, 1] none
out X@GRAD float64 [1, 1, 1] 0.1
)")

HEDDLE_EXAMPLES(squeeze, R"(
example axes 0 2
attr axes INTS [0, 2]
in X float32 [1, 3, 1, 2] -0.8 -0.57 -0.2 -0.74 0.25 0.68
from squeeze2 X=X -> Out=Out XShape=shape
attr axes INTS [0, 2]
out Out float32 [3, 2] -0.8 -0.57 -0.2 -0.74 0.25 0.68

example all of size 1
attr axes INTS []
in X float32 [1, 3, 1] -0.16 0.17 -0.65
from squeeze2 X=X -> Out=Out XShape=shape
attr axes INTS []
out Out float32 [3] -0.16 0.17 -0.65

example int64, negative axis
attr axes INTS [-1]
in X int64 [2, 1] 9 7
from squeeze2 X=X -> Out=Out XShape=shape
attr axes INTS [-1]
out Out int64 [2] 9 7
)")

HEDDLE_EXAMPLES(squeeze_grad, R"(
example axes 0 2, float32
attr axes INTS [0, 2]
in X float32 [1, 3, 1, 2] -0.8 -0.57 -0.2 -0.74 0.25 0.68
in Out@GRAD float32 [3, 2] 0.56 -0.62 -0.99 0.76 0.76 0.16
from squeeze2 X=X -> Out=t XShape=shape
attr axes INTS [0, 2]
from squeeze2_grad XShape=shape Out@GRAD=Out@GRAD -> X@GRAD=X@GRAD
attr axes INTS [0, 2]
out X@GRAD float32 [1, 3, 1, 2] 0.56 -0.62 -0.99 0.76 0.76 0.16

example axes 0 2, float64
attr axes INTS [0, 2]
in X float64 [1, 3, 1, 2] -0.800000011920929 -0.5699999928474426 -0.20000000298023224
  -0.7400000095367432 0.25 0.6800000071525574
in Out@GRAD float64 [3, 2] -0.8 0.02 -0.02 -0.02 0.51 0.85
from squeeze2 X=X -> Out=t XShape=shape
attr axes INTS [0, 2]
from squeeze2_grad XShape=shape Out@GRAD=Out@GRAD -> X@GRAD=X@GRAD
attr axes INTS [0, 2]
out X@GRAD float64 [1, 3, 1, 2] -0.8 0.02 -0.02 -0.02 0.51 0.85

example all of size 1, float32
attr axes INTS []
in X float32 [1, 3, 1] -0.16 0.17 -0.65
in Out@GRAD float32 [3] -0.33 0.23 0.99
from squeeze2 X=X -> Out=t XShape=shape
attr axes INTS []
from squeeze2_grad XShape=shape Out@GRAD=Out@GRAD -> X@GRAD=X@GRAD
attr axes INTS []
out X@GRAD float32 [1, 3, 1] -0.33 0.23 0.99

example all of size 1, float64
attr axes INTS []
in X float64 [1, 3, 1] -0.1599999964237213 0.17000000178813934 -0.6499999761581421
in Out@GRAD float64 [3] 0.57 0.73 0.89
from squeeze2 X=X -> Out=t XShape=shape
attr axes INTS []
from squeeze2_grad XShape=shape Out@GRAD=Out@GRAD -> X@GRAD=X@GRAD
attr axes INTS []
out X@GRAD float64 [1, 3, 1] 0.57 0.73 0.89
)")

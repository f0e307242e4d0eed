#include "kernels/shape/view_op.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Dimensions [begin, end] of `x` as one; unknown when one of them is.
Shape Join(const Shape& x, int begin, int end) {
  Shape out;
  int64_t joined = 1;
  for (int i = begin; i <= end; ++i) joined = joined < 0 || x[i] < 0 ? -1 : joined * x[i];
  for (int i = 0; i < begin; ++i) out.push_back(x[i]);
  out.push_back(joined);
  for (int i = end + 1; i < x.rank(); ++i) out.push_back(x[i]);
  return out;
}

Status FlattenShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int begin, NormalAxis(ctx.Int("start_axis"), x.rank()));
  HEDDLE_ASSIGN_OR_RETURN(const int end, NormalAxis(ctx.Int("stop_axis"), x.rank()));
  if (begin > end)
    return InvalidArgument("'start_axis' (", begin, ") must not be behind 'stop_axis' (", end, ")");
  return SetViewOut(ctx, x.rank() == 0 ? Shape{1} : Join(x, begin, end));
}

// flatten and flatten2: two dimensions, cut before `axis`.
Status Flatten2Shape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  int64_t axis = ctx.Int("axis");
  if (axis < 0) axis += x.rank();
  if (axis < 0 || axis > x.rank())
    return OutOfRange("'axis' is ", ctx.Int("axis"), ", but X has rank ", x.rank());
  if (x.rank() == 0) return SetViewOut(ctx, Shape{1});
  Shape out{1, 1};
  for (int i = 0; i < x.rank(); ++i) {
    int64_t& d = out[i < axis ? 0 : 1];
    d = d < 0 || x[i] < 0 ? -1 : d * x[i];
  }
  return SetViewOut(ctx, out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(flatten_contiguous_range) {
  op.Doc("X with dimensions start_axis..stop_axis joined into one.")
      .Input("X")
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("start_axis", 1)
      .Attr("stop_axis", 1)
      .View("X", "Out")
      .InferShape(FlattenShape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(flatten_contiguous_range_grad) {
  op.Input("Out@GRAD")
      .Input("XShape", kNoBuffer)
      .Output("X@GRAD")
      .View("Out@GRAD", "X@GRAD")
      .InferShape(GradFromXShape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(flatten2) {
  op.Doc("X as a matrix: dimensions before `axis` are its rows.")
      .Input("X")
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("axis", 1)
      .View("X", "Out")
      .InferShape(Flatten2Shape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(flatten2_grad) {
  op.Input("Out@GRAD")
      .Input("XShape", kNoBuffer)
      .Output("X@GRAD")
      .View("Out@GRAD", "X@GRAD")
      .InferShape(GradFromXShape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(flatten) {
  op.Doc("flatten2 without XShape.")
      .Input("X")
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("axis", 1)
      .View("X", "Out")
      .InferShape(Flatten2Shape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(flatten_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Output("X@GRAD")
      .View("Out@GRAD", "X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(CopyFirst);
}

HEDDLE_EXAMPLES(flatten_contiguous_range, R"(
example float32 4, start_axis 0, stop_axis 0
attr start_axis INT 0
attr stop_axis INT 0
in X float32 [4] -0.5 -0.15 0.55 0.2
out Out float32 [4] -0.5 -0.15 0.55 0.2
out XShape ?

example float64 scalar, start_axis 0, stop_axis -1
attr start_axis INT 0
attr stop_axis INT -1
in X float64 [] 0.227
out Out float64 [1] 0.227
out XShape ?

example int32 4, start_axis 0, stop_axis 0
attr start_axis INT 0
attr stop_axis INT 0
in X int32 [4] 0*4
out Out int32 [4] 0*4
out XShape ?

example int64 4, start_axis 0, stop_axis 0
attr start_axis INT 0
attr stop_axis INT 0
in X int64 [4] 0*4
out Out int64 [4] 0*4
out XShape ?

example bfloat16 4, start_axis 0, stop_axis 0
attr start_axis INT 0
attr stop_axis INT 0
in X bfloat16 [4] -0.5 -0.15 0.55 0.2
out Out bfloat16 [4] -0.5 -0.15 0.55 0.2
out XShape ?
)")

HEDDLE_EXAMPLES(flatten2, R"(
example int64 4x2, axis 0
attr axis INT 0
in X int64 [4, 2] -2 -9 -8 -9 4 -1 0 -5
out Out int64 [1, 8] -2 -9 -8 -9 4 -1 0 -5
out XShape ?

example float32 2, axis 0
attr axis INT 0
in X float32 [2] -0.369 -0.421
out Out float32 [1, 2] -0.369 -0.421
out XShape ?

example float64 scalar, axis 0
attr axis INT 0
in X float64 [] 0.696
out Out float64 [1] 0.696
out XShape ?

example float64 4x2x2x3
in X float64 [4, 2, 2, 3] 0.874 0.935 0.043 0.448 0.286 0.691 0.732 0.144 0.894 0.388 0.773 0.124
  0.833 0.205 0.428 0.509 0.469 0.408 0.165 0.61 0.671 0.307 0.266 0.59 0.854 0.651 0.226 0.813
  0.327 0.57 0.914 0.712 0.246 0.955 0.55 0.023 0.975 0.489 0.104 0.529 0.185 0.367 0.084 0.631
  0.347 0.063 0.752 0.793
out Out float64 [4, 12] 0.874 0.935 0.043 0.448 0.286 0.691 0.732 0.144 0.894 0.388 0.773 0.124
  0.833 0.205 0.428 0.509 0.469 0.408 0.165 0.61 0.671 0.307 0.266 0.59 0.854 0.651 0.226 0.813
  0.327 0.57 0.914 0.712 0.246 0.955 0.55 0.023 0.975 0.489 0.104 0.529 0.185 0.367 0.084 0.631
  0.347 0.063 0.752 0.793
out XShape ?
)")

HEDDLE_EXAMPLES(flatten2_grad, R"(
example float64 1x2
in Out@GRAD float64 [1, 2] -0.2 0.1
in XShape float32 [0, 2] none
out X@GRAD float64 [2] -0.2 0.1

example float64 4x12
in Out@GRAD float64 [4, 12] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2 -0.3 -0.9 -0.8 0.7 -0 -0.5 0.5 0.1 -0.2 0.3 -0.7 0.4 -0.9 0.2 -0.6
  -0.5 -0.2 0.4 0.6 0.8 -0.6 -1 0.5 -0.6
in XShape float32 [0, 4, 2, 2, 3] none
out X@GRAD float64 [4, 2, 2, 3] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0
  -1 0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2 -0.3 -0.9 -0.8 0.7 -0 -0.5 0.5 0.1 -0.2 0.3 -0.7 0.4 -0.9 0.2
  -0.6 -0.5 -0.2 0.4 0.6 0.8 -0.6 -1 0.5 -0.6
)")

HEDDLE_EXAMPLES(flatten, R"(
example axis 0
attr axis INT 0
in X float32 [2, 3, 2] -0.22 0.27 0.66 -0.36 -0.68 0.42 0.75 0.19 0.39 -0.65 0.06 0.74
from flatten2 X=X -> Out=Out XShape=shape
attr axis INT 0
out Out float32 [1, 12] -0.22 0.27 0.66 -0.36 -0.68 0.42 0.75 0.19 0.39 -0.65 0.06 0.74

example axis 1
attr axis INT 1
in X float32 [2, 3, 2] 0.68 0.94 0.56 -0.61 0.22 -0.04 0.23 -0.72 -0.18 0.56 0.88 -0.79
from flatten2 X=X -> Out=Out XShape=shape
attr axis INT 1
out Out float32 [2, 6] 0.68 0.94 0.56 -0.61 0.22 -0.04 0.23 -0.72 -0.18 0.56 0.88 -0.79

example axis 2
attr axis INT 2
in X float32 [2, 3, 2] 0.88 0.59 -0.34 -0.38 -0.42 -0.65 0.76 0.64 0.47 0.69 0.22 -0.31
from flatten2 X=X -> Out=Out XShape=shape
attr axis INT 2
out Out float32 [6, 2] 0.88 0.59 -0.34 -0.38 -0.42 -0.65 0.76 0.64 0.47 0.69 0.22 -0.31

example int64
in X int64 [2, 1, 3] -3 -8 -1 -2 6 0
from flatten2 X=X -> Out=Out XShape=shape
attr axis INT 1
out Out int64 [2, 3] -3 -8 -1 -2 6 0
)")

HEDDLE_EXAMPLES(flatten_grad, R"(
example float32
in X float32 [2, 3, 2] 0.73 -0.54 0.32 -0.91 0.81 -0.69 0.16 -0.71 0.08 0.77 -0.82 -0.26
in Out@GRAD float32 [2, 6] 0.74 0.79 -0.86 0.87 -0.15 -0.9 0.75 -0.23 0.71 0.07 0.3 0.98
from flatten2 X=X -> Out=t XShape=shape
attr axis INT 1
from flatten2_grad XShape=shape Out@GRAD=Out@GRAD -> X@GRAD=X@GRAD
out X@GRAD float32 [2, 3, 2] 0.74 0.79 -0.86 0.87 -0.15 -0.9 0.75 -0.23 0.71 0.07 0.3 0.98

example float64
in X float64 [2, 3, 2] -0.45 0.03 0.34 0.37 -0.84 0.24 0.94 -0.88 -0.51 0.68 -0.86 0.03
in Out@GRAD float64 [2, 6] -0.34 -0.95 -0.7 0.97 -0.22 -0.8 -0.9 -0.31 0.26 0.68 -0.06 -0.28
from flatten2 X=X -> Out=t XShape=shape
attr axis INT 1
from flatten2_grad XShape=shape Out@GRAD=Out@GRAD -> X@GRAD=X@GRAD
out X@GRAD float64 [2, 3, 2] -0.34 -0.95 -0.7 0.97 -0.22 -0.8 -0.9 -0.31 0.26 0.68 -0.06 -0.28
)")

HEDDLE_EXAMPLES(flatten_contiguous_range_grad, R"(
example float32
attr start_axis INT 1
attr stop_axis INT 2
in XShape float32 [0, 2, 3, 2] none
in Out@GRAD float32 [2, 6] -0.49 0.73 -0.97 0.1 0.06 0.85 -0.51 -0.87 0.8 0.75 -0.67 1
out X@GRAD float32 [2, 3, 2] -0.49 0.73 -0.97 0.1 0.06 0.85 -0.51 -0.87 0.8 0.75 -0.67 1

example float64
attr start_axis INT 1
attr stop_axis INT 2
in XShape float64 [0, 2, 3, 2] none
in Out@GRAD float64 [2, 6] -0.89 -0.78 0.05 -0.59 -0.49 -0.56 -0.02 -0.72 0.58 -0.89 0.44 -0.63
out X@GRAD float64 [2, 3, 2] -0.89 -0.78 0.05 -0.59 -0.49 -0.56 -0.02 -0.72 0.58 -0.89 0.44 -0.63
)")

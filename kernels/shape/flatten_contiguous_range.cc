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
  const bool matrix = ctx.def().FindAttr("scalar_to_matrix") >= 0 && ctx.Bool("scalar_to_matrix");
  if (x.rank() == 0 && !matrix) return SetViewOut(ctx, Shape{1});
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
  op.Doc(
        "X as a matrix: dimensions before `axis` are its rows; of a scalar a vector, or with "
        "scalar_to_matrix a matrix.")
      .Input("X")
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("axis", 1)
      .Attr("scalar_to_matrix", false)
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

#include "kernels/index/index_args.h"
#include "kernels/shape/view_op.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Axes are inserted one after another: each counts in the shape made so far.
Status Shapes(ShapeContext& ctx, const IntArgs& axes) {
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
  return Shapes(ctx, axes);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(unsqueeze2) {
  op.Doc("X with dimensions of 1 inserted at `axes`.")
      .Input("X")
      .Input("AxesTensor", kOptional | kShapeValue)
      .Input("AxesTensorList", kOptional | kList | kShapeValue)
      .Output("Out")
      .Output("XShape", kOptional)
      .Attr("axes", Ints{})
      .View("X", "Out")
      .InferShape(Unsqueeze2Shape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(unsqueeze2_grad) {
  op.Input("Out@GRAD")
      .Input("XShape", kNoBuffer)
      .Input("AxesTensor", kOptional | kNoBuffer)
      .Input("AxesTensorList", kOptional | kList | kNoBuffer)
      .Output("X@GRAD")
      .View("Out@GRAD", "X@GRAD")
      .InferShape(GradFromXShape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(unsqueeze) {
  op.Doc("unsqueeze2 without XShape.")
      .Input("X")
      .Input("AxesTensor", kOptional | kShapeValue)
      .Input("AxesTensorList", kOptional | kList | kShapeValue)
      .Output("Out")
      .Output("XShape", kOptional)
      .Attr("axes", Ints{})
      .View("X", "Out")
      .InferShape(Unsqueeze2Shape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(unsqueeze_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("AxesTensor", kOptional | kNoBuffer)
      .Input("AxesTensorList", kOptional | kList | kNoBuffer)
      .Output("X@GRAD")
      .View("Out@GRAD", "X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(CopyFirst);
}

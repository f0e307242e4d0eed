#include "kernels/base/index_args.h"
#include "kernels/shape/view_op.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Axes count in the result, whatever their order.
Status UnsqueezeAt(ShapeContext& ctx, const Shape& x, const IntArgs& axes) {
  const int rank = x.rank() + axes.n;
  bool made[Shape::kMaxRank] = {};
  for (int64_t a : axes.span()) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(a, rank));
    if (made[axis]) return InvalidArgument("'axes' names ", a, " twice");
    made[axis] = true;
  }
  Shape out;
  for (int i = 0, from = 0; i < rank; ++i) out.push_back(made[i] ? 1 : x[from++]);
  return SetViewOut(ctx, out);
}

// Axes are inserted one after another: each counts in the shape made so far.
Status UnsqueezeShapes(ShapeContext& ctx, const IntArgs& axes) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank() || !axes.known) return ctx.Defer();
  if (x.rank() + axes.n > Shape::kMaxRank)
    return InvalidArgument("X of rank ", x.rank(), " with ", axes.n,
                           " more dimensions has too many; at most ", Shape::kMaxRank,
                           " are supported");
  if (ctx.Bool("in_result")) return UnsqueezeAt(ctx, x, axes);
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
      .Attr("in_result", false)
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

HEDDLE_OP(unsqueeze2) {
  DefineUnsqueeze(
      op, "X with dimensions of 1 at `axes`, inserted one by one, or with in_result all at once.");
}
HEDDLE_OP(unsqueeze2_grad) { DefineUnsqueezeGrad(op, "XShape", GradFromXShape); }
HEDDLE_OP(unsqueeze) { DefineUnsqueeze(op, "unsqueeze2 without XShape."); }
HEDDLE_OP(unsqueeze_grad) { DefineUnsqueezeGrad(op, "X", GradLikeInputs); }

#include "kernels/base/index_args.h"
#include "kernels/shape/view_op.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Drops the named dimensions that are 1 (all of them when none is named).
Status SqueezeNamed(ShapeContext& ctx, const IntArgs& axes, bool all, bool ones_only) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank() || !axes.known) return ctx.Defer();
  unsigned named = all ? ~0u : 0;
  for (int64_t a : axes.span()) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(a, x.rank()));
    named |= 1u << axis;
    if (ones_only && (x.rank() == 0 || (x[axis] >= 0 && x[axis] != 1)))
      return InvalidArgument("'axes' names ", a, ", which is not 1 in X of shape ", x.ToString());
  }
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    const bool drop = (named >> i & 1) != 0;
    if (drop && x[i] < 0 && (all || !ones_only))
      return ctx.Defer();  // 1 or not: the rank depends on it
    if (!drop || (x[i] != 1 && x[i] >= 0)) out.push_back(x[i]);
  }
  return SetViewOut(ctx, out);
}

Status SqueezeShape(ShapeContext& ctx) {
  IntArgs axes;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "AxesTensor", "axes", &axes));
  const bool all = !Holds(ctx.InVar("AxesTensor")) && axes.n == 0;
  return SqueezeNamed(ctx, axes, all, ctx.Bool("ones_only"));
}

// Both versions; the second one has XShape, from which its gradient takes the shape.
void DefineSqueeze(OpDef& op, const char* doc) {
  op.Doc(doc)
      .Input("X")
      .Input("AxesTensor", kOptional | kShapeValue)
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("axes", Ints{})
      .Attr("ones_only", false)
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
      op,
      "X without the dimensions of `axes` that are 1 (no axes: without any dimension of 1); with "
      "ones_only others there are an error.");
}
HEDDLE_OP(squeeze2_grad) { DefineSqueezeGrad(op, "XShape", GradFromXShape); }
HEDDLE_OP(squeeze) { DefineSqueeze(op, "squeeze2 without XShape."); }
HEDDLE_OP(squeeze_grad) { DefineSqueezeGrad(op, "X", GradLikeInputs); }

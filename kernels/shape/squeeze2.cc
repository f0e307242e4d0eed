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

#include "kernels/base/index_args.h"
#include "kernels/shape/view_op.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// One -1 takes what is left over, 0 copies X's dimension of the same position, or is the size
// itself.
Result<Shape> ResolveShape(const Shape& x, const IntArgs& want, bool literal_zero) {
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
    } else if (d == 0 && !literal_zero) {
      if (x.known_rank() && i >= x.rank())
        return InvalidArgument("dimension ", i, " of 'shape' is 0, but X has shape ", x.ToString());
      d = x.known_rank() ? x[i] : -1;
      known = known && d >= 0;
    } else if (d < 0) {
      return InvalidArgument("dimension ", i, " of 'shape' is ", d,
                             "; expected -1, 0 or a positive number");
    }
    out.push_back(d);
    if (i != open && d >= 0 && __builtin_mul_overflow(rest, d, &rest))
      return InvalidArgument("'shape' has more elements than can be stored");
  }
  if (!known) return out;
  const int64_t numel = x.numel();
  if (open >= 0) out[open] = rest == 0 ? 0 : numel / rest;
  if (out.numel() != numel || (literal_zero && open >= 0 && rest == 0))
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
    const bool literal_zero = ctx.def().FindAttr("literal_zero") >= 0 && ctx.Bool("literal_zero");
    HEDDLE_ASSIGN_OR_RETURN(out, ResolveShape(ctx.InShape("X"), want, literal_zero));
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
  op.Doc(
        "X with another shape (0: keep that dimension, or with literal_zero a size of 0; -1: "
        "whatever is left).")
      .Input("X")
      .Input("Shape", kOptional | kShapeValue)
      .Input("ShapeTensor", kOptional | kList | kShapeValue)
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("shape", Ints{})
      .Attr("literal_zero", false)
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

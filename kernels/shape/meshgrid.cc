#include "core/shapes.h"
#include "kernels/strided/index_expand.h"

namespace heddle {
namespace {

Status GridShape(ShapeContext& ctx) {
  const int count = ctx.InCount("X");
  if (count == 0 || count > Shape::kMaxRank || ctx.OutCount("Out") != count)
    return InvalidArgument("'X' names ", count, " tensors and 'Out' ", ctx.OutCount("Out"),
                           "; expected 1 to ", Shape::kMaxRank, " of both");
  Shape out;
  for (int i = 0; i < count; ++i) {
    const Shape& x = ctx.InShape("X", i);
    if (!x.known_rank()) return ctx.Defer();
    if (x.rank() > 1)
      return InvalidArgument("'X' [", i, "] must be a vector, not of shape ", x.ToString());
    out.push_back(x.rank() == 0 ? 1 : x[0]);
  }
  for (int i = 0; i < count; ++i) ctx.SetOut("Out", out, ctx.InDType("X", i), i);
  return Status::Ok();
}

// Vector i lies along dimension i.
Shape Placed(int64_t length, int i, int count) {
  Shape shape;
  for (int d = 0; d < count; ++d) shape.push_back(d == i ? length : 1);
  return shape;
}

Status Grid(KernelContext& ctx) {
  const int count = ctx.InCount("X");
  for (int i = 0; i < count; ++i) {
    const Tensor& x = ctx.In("X", i);
    HEDDLE_RETURN_IF_ERROR(
        RunRepeat(ctx, x.Reshaped(Placed(x.numel(), i, count)), ctx.Out("Out", i)));
  }
  return Status::Ok();
}

Status GridGrad(KernelContext& ctx) {
  const int count = ctx.InCount("X");
  for (int i = 0; i < count; ++i) {
    if (!ctx.HasOut("X@GRAD", i)) continue;
    Tensor& out = ctx.Out("X@GRAD", i);
    Tensor sum = out.Reshaped(Placed(out.numel(), i, count));
    HEDDLE_RETURN_IF_ERROR(RunRepeatSum(ctx, ctx.In("outputs@GRAD", i), sum));
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(meshgrid) {
  op.Doc("Vector i of X repeated over the grid that all of them span.")
      .Input("X", kList)
      .Output("Out", kList)
      .InferShape(GridShape)
      .AnyKernel(Grid);
}
HEDDLE_OP(meshgrid_grad) {
  op.Input("outputs@GRAD", kList)
      .Input("X", kList | kNoBuffer)
      .Output("X@GRAD", kList)
      .InferShape(GradLikeInputs)
      .AnyKernel(GridGrad);
}

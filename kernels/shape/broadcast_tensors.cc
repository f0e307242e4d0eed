#include "core/shapes.h"
#include "kernels/strided/index_expand.h"

namespace heddle {
namespace {

Status BroadcastShapes(ShapeContext& ctx) {
  const int count = ctx.InCount("X");
  if (count == 0 || ctx.OutCount("Out") != count)
    return InvalidArgument("'X' names ", count, " tensors and 'Out' ", ctx.OutCount("Out"));
  Shape out = ctx.InShape("X");
  for (int i = 1; i < count; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(out, BroadcastShape(out, ctx.InShape("X", i), -1));
    if (!out.known_rank()) return ctx.Defer();
  }
  for (int i = 0; i < count; ++i) ctx.SetOut("Out", out, ctx.InDType("X", i), i);
  return Status::Ok();
}

Status Broadcast(KernelContext& ctx) {
  for (int i = 0; i < ctx.InCount("X"); ++i)
    if (ctx.HasOut("Out", i))
      HEDDLE_RETURN_IF_ERROR(RunRepeat(ctx, ctx.In("X", i), ctx.Out("Out", i)));
  return Status::Ok();
}

Status BroadcastGrad(KernelContext& ctx) {
  for (int i = 0; i < ctx.InCount("X"); ++i)
    if (ctx.HasOut("X@GRAD", i))
      HEDDLE_RETURN_IF_ERROR(RunRepeatSum(ctx, ctx.In("Out@GRAD", i), ctx.Out("X@GRAD", i)));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(broadcast_tensors) {
  op.Doc("Every tensor of X broadcast to the shape they have in common.")
      .Input("X", kList)
      .Output("Out", kList)
      .InferShape(BroadcastShapes)
      .AnyKernel(Broadcast);
}
HEDDLE_OP(broadcast_tensors_grad) {
  op.Input("Out@GRAD", kList)
      .Input("X", kList | kNoBuffer)
      .Output("X@GRAD", kList)
      .InferShape(GradLikeInputs)
      .AnyKernel(BroadcastGrad);
}

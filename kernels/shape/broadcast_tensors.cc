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

HEDDLE_EXAMPLES(broadcast_tensors, R"(
example int64 2x2
in X int64 [1, 2] 1 0
in X int64 [2] 1 0
in X int64 [2, 2] 3 5 4 2
out Out int64 [2, 2] 1 0 1 0
out Out int64 [2, 2] 1 0 1 0
out Out int64 [2, 2] 3 5 4 2

example float64 2x5
in X float64 [2, 1] 6.11 4.25
in X float64 [2, 5] 6.15 8.71 7.43 8.07 3.58 9.36 4.22 5.5 4.86 6.79
out Out float64 [2, 5] 6.11*5 4.25*5
out Out float64 [2, 5] 6.15 8.71 7.43 8.07 3.58 9.36 4.22 5.5 4.86 6.79

example float32 4
in X float32 [4] -0.57 0.25 -0.02 -0.3
in X float32 [1] -0.153
in X float32 [1] -0.292
in X float32 [4] -0.6 0.45 0.1 -0.25
out Out float32 [4] -0.57 0.25 -0.02 -0.3
out Out float32 [4] -0.153*4
out Out float32 [4] -0.292*4
out Out float32 [4] -0.6 0.45 0.1 -0.25

example float32 4x1x1
in X float32 [4, 1, 1] -0.17 0.26 0.48 0.04
in X float32 [4, 1, 1] 0.47 0.68 0.05 0.26
in X float32 [4, 1, 1] -0.47 0.22 0.57 -0.12
in X float32 [4, 1, 1] 0.212 0.328 -0.021 0.095
out Out float32 [4, 1, 1] -0.17 0.26 0.48 0.04
out Out float32 [4, 1, 1] 0.47 0.68 0.05 0.26
out Out float32 [4, 1, 1] -0.47 0.22 0.57 -0.12
out Out float32 [4, 1, 1] 0.212 0.328 -0.021 0.095
)")

HEDDLE_EXAMPLES(broadcast_tensors_grad, R"(
example float64 4
in Out@GRAD float64 [4] -0.4 0.2 -0.7 -0.8
in Out@GRAD float64 [4] 0.1 -0.9 0.9 -0.7
in Out@GRAD float64 [4] 0.8 -0.9 -0.9 -0.1
in Out@GRAD float64 [4] -0.2 -0.4 -0.8 0.6
in X float64 [4] -0.02 -0.3 -0.57 0.25
in X float64 [1] -0.153
in X float64 [1] -0.292
in X float64 [4] 0.45 -0.25 -0.6 0.1
out X@GRAD float64 [4] -0.4 0.2 -0.7 -0.8
out X@GRAD float64 [1] -0.6000000000000001
out X@GRAD float64 [1] -1.1
out X@GRAD float64 [4] -0.2 -0.4 -0.8 0.6

example float64 3x1x4x1
in Out@GRAD float64 [3, 1, 4, 1] -0.7 -0.8 -0.4 0.4 0.2 0.8 -0.4 -0.4 -0.5 -0.1 0.4 0.4
in Out@GRAD float64 [3, 1, 4, 1] -0.7 0.4 -0.7 0.6 -0.8 -0.8 -0.7 -0.9 0 0.8 0.1 0
in X float64 [3, 1, 4, 1] 0.384 0.08 0.308 0.841 0.232 0.156 0.689 0.765 0.536 0.917 0.612 0.46
in X float64 [3, 1, 4, 1] 0.617 0.77 0.159 0.541 0.388 0.464 0.235 0.923 0.846 0.082 0.312 0.693
out X@GRAD float64 [3, 1, 4, 1] -0.7 -0.8 -0.4 0.4 0.2 0.8 -0.4 -0.4 -0.5 -0.1 0.4 0.4
out X@GRAD float64 [3, 1, 4, 1] -0.7 0.4 -0.7 0.6 -0.8 -0.8 -0.7 -0.9 0 0.8 0.1 0

example float64 4x1x1
in Out@GRAD float64 [4, 1, 1] -0.7 -0.5 -0 -0.4
in Out@GRAD float64 [4, 1, 1] -0.5 -0.1 -0 -0.8
in Out@GRAD float64 [4, 1, 1] 0.7 0.6 0.6 0.3
in Out@GRAD float64 [4, 1, 1] 0.9 0 0.6 0.5
in X float64 [4, 1, 1] -0.17 0.04 0.48 0.26
in X float64 [4, 1, 1] 0.05 0.47 0.26 0.68
in X float64 [4, 1, 1] 0.57 0.22 -0.47 -0.12
in X float64 [4, 1, 1] 0.095 -0.021 0.328 0.212
out X@GRAD float64 [4, 1, 1] -0.7 -0.5 -0 -0.4
out X@GRAD float64 [4, 1, 1] -0.5 -0.1 -0 -0.8
out X@GRAD float64 [4, 1, 1] 0.7 0.6 0.6 0.3
out X@GRAD float64 [4, 1, 1] 0.9 0 0.6 0.5

example float32 4
in Out@GRAD float32 [4] -0.4 0.2 -0.7 -0.8
in Out@GRAD float32 [4] 0.1 -0.9 0.9 -0.7
in Out@GRAD float32 [4] 0.8 -0.9 -0.9 -0.1
in Out@GRAD float32 [4] -0.2 -0.4 -0.8 0.6
in X float32 [4] -0.02 -0.3 -0.57 0.25
in X float32 [1] -0.153
in X float32 [1] -0.292
in X float32 [4] 0.45 -0.25 -0.6 0.1
out X@GRAD float32 [4] -0.4 0.2 -0.7 -0.8
out X@GRAD float32 [1] -0.59999996
out X@GRAD float32 [1] -1.0999999
out X@GRAD float32 [4] -0.2 -0.4 -0.8 0.6
)")

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

HEDDLE_EXAMPLES(meshgrid, R"(
example float64 3
in X float64 [] 0.696
in X float64 [2] 0.2696 0.2339
in X float64 [3] 0.537 0.602 0.424
out Out float64 [1, 2, 3] 0.696*6
out Out float64 [1, 2, 3] 0.2696 0.2696 0.2696 0.2339 0.2339 0.2339
out Out float64 [1, 2, 3] 0.537 0.602 0.424 0.537 0.602 0.424

example float32 2
in X float32 [1] 0.142
in X float32 [2] 0.58 0.687
out Out float32 [1, 2] 0.142 0.142
out Out float32 [1, 2] 0.58 0.687

example int32 4
in X int32 [4] 1 1 1 0
in X int32 [3] 1 0 0
out Out int32 [4, 3] 1*9 0 0 0
out Out int32 [4, 3] 1 0 0 1 0 0 1 0 0 1 0 0

example int64 3
in X int64 [] 1
in X int64 [2] 1 1
in X int64 [3] 0 0 1
out Out int64 [1, 2, 3] 1*6
out Out int64 [1, 2, 3] 1*6
out Out int64 [1, 2, 3] 0 0 1 0 0 1
)")

HEDDLE_EXAMPLES(meshgrid_grad, R"(
example float64 2
in X float64 [1] 0.142
in X float64 [2] 0.625 0.394
in outputs@GRAD float64 [1, 2] 0.3 0.9
in outputs@GRAD float64 [1, 2] -0.2 0.3
out X@GRAD float64 [1] 1.2
out X@GRAD float64 [2] -0.2 0.3

example float64 1x2x3
in X float64 [] 0.696
in X float64 [2] 0.2684 0.2785
in X float64 [3] 0.636 0.489 0.682
in outputs@GRAD float64 [1, 2, 3] -0.8 -0.4 0.6 0 -0.8 -0.8
in outputs@GRAD float64 [1, 2, 3] 0.7 0.7 -0.2 0.5 -0.7 0.9
in outputs@GRAD float64 [1, 2, 3] -0.9 0.7 0.1 0.8 0.8 -0.7
out X@GRAD float64 [] -2.2
out X@GRAD float64 [2] 1.2 0.7000000000000001
out X@GRAD float64 [3] -0.09999999999999998 1.5 -0.6

example float32 2
in X float32 [1] 0.142
in X float32 [2] 0.625 0.394
in outputs@GRAD float32 [1, 2] 0.3 0.9
in outputs@GRAD float32 [1, 2] -0.2 0.3
out X@GRAD float32 [1] 1.2
out X@GRAD float32 [2] -0.2 0.3
)")

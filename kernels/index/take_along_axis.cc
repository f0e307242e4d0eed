// take_along_axis: one element of X per entry of Index, along an axis.
#include "core/operands/any_address.h"
#include "core/shapes.h"
#include "kernels/index/index_args.h"
#include "kernels/index/nd_rows.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status TakeShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("Input");
  const Shape& index = ctx.InShape("Index");
  if (!x.known_rank() || !index.known_rank()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(NormalAxis(ctx.Int("Axis"), x.rank()).status());
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("Index"), "Index"));
  if (x.rank() != index.rank())
    return InvalidArgument("'Input' ", x.ToString(), " and 'Index' ", index.ToString(),
                           " must have one rank");
  ctx.SetOut("Result", index, ctx.InDType("Input"));
  return Status::Ok();
}

Status Take(KernelContext& ctx) {
  const Tensor& x = ctx.In("Input");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor elements, ElementsOfIndex(ctx, x.shape()));
  GatherRows(ctx, x.raw(), elements, GoodRows(x.numel()), 1,
             static_cast<int64_t>(SizeOf(x.dtype())), ctx.Out("Result").mutable_raw());
  return Status::Ok();
}

Status TakeGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Result@GRAD");
  Tensor& out = ctx.Out("Input@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor elements, ElementsOfIndex(ctx, out.shape()));
  if (grad.numel() != elements.numel() || grad.dtype() != out.dtype())
    return InvalidArgument("'Result@GRAD' of shape ", grad.shape().ToString(),
                           " does not fit 'Index'");
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  return ScatterAddRows(ctx, grad.raw(), elements, GoodRows(out.numel()), 1, 1, out.dtype(),
                        out.mutable_raw());
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(take_along_axis) {
  op.Doc("Elements of Input: entry [i, j] of Index names the place along Axis in row [i, j].")
      .Input("Input", kAnyAddress)
      .Input("Index")
      .Output("Result")
      .Attr("Axis", 0)
      .InferShape(TakeShape)
      .AnyKernel(Take);
}

HEDDLE_OP(take_along_axis_grad) {
  op.Input("Result@GRAD")
      .Input("Input", kNoBuffer)
      .Input("Index")
      .Output("Input@GRAD")
      .Attr("Axis", 0)
      .InferShape(GradLikeInputs)
      .AnyKernel(TakeGrad);
}

HEDDLE_EXAMPLES(take_along_axis, R"(
example float32 3x3, Axis 0
attr Axis INT 0
in Index int64 [1, 3] 0 1 2
in Input float32 [3, 3] 0.586 0.802 0.748 0.532 0.694 0.91 0.478 0.856 0.64
out Result float32 [1, 3] 0.586 0.694 0.64

example float64 4x3, Axis 1
attr Axis INT 1
in Index int32 [4, 1] 1*4
in Input float64 [4, 3] 0.136 0.486 0.626 0.276 0.556 0.905 0.206 0.416 0.696 0.346 0.765 0.835
out Result float64 [4, 1] 0.486 0.556 0.416 0.765

example float32 3, Axis 0
attr Axis INT 0
in Index int64 [1] 0
in Input float32 [3] 0.23 0.58 -0.55
out Result float32 [1] 0.23

example float32 3x4x4, Axis 2
attr Axis INT 2
in Index int64 [3, 4, 3] 1 2 0 2 2 0 2 0 0 0 1 2 1 1 0 1 1 0 0 2 0 0 2 1 0 1 2 2 2 1 2 2 1 2 2 2
in Input float32 [3, 4, 4] 0.09 -0.46 -0.69 0.8 0.6 0.41 0.64 -0.85 0.01 -0.3 -0.89 -0.38 0.72 -0.65
  -0.5 0.53 -0.73 0.25 0.37 0.49 -0.18 0.57 0.33 -0.62 0.05 0.17 0.68 0.45 0.29 -0.06 -0.14 0.84
  -0.03 -0.22 0.13 -0.93 0.21 -0.81 -0.34 -0.77 -0.26 0.76 0.88 -0.58 0.92 -0.42 -0.54 -0.1
out Result float32 [3, 4, 3] -0.46 -0.69 0.09 0.64 0.64 0.6 -0.89 0.01 0.01 0.72 -0.65 -0.5 0.25
  0.25 -0.73 0.57 0.57 -0.18 0.05 0.68 0.05 0.29 -0.14 -0.06 -0.03 -0.22 0.13 -0.34 -0.34 -0.81 0.88
  0.88 0.76 -0.54 -0.54 -0.54
)")

HEDDLE_EXAMPLES(take_along_axis_grad, R"(
example float64 5x1, Axis 0
attr Axis INT 0
in Index int64 [3, 1] 1 3 2
in Input float64 [5, 1] 0.65 -0.59 0.34 -0.28 0.03
in Result@GRAD float64 [3, 1] -0.7 -0.5 0.6
out Input@GRAD float64 [5, 1] 0 -0.7 0.6 -0.5 0

example float64 3, Axis 0
attr Axis INT 0
in Index int64 [1] 0
in Input float64 [3] 0.38 -0.4 0.8
in Result@GRAD float64 [1] 0.5
out Input@GRAD float64 [3] 0.5 0 0

example float32 5x1, Axis 0
attr Axis INT 0
in Index int64 [3, 1] 1 3 2
in Input float32 [5, 1] 0.65 -0.59 0.34 -0.28 0.03
in Result@GRAD float32 [3, 1] -0.7 -0.5 0.6
out Input@GRAD float32 [5, 1] 0 -0.7 0.6 -0.5 0
)")

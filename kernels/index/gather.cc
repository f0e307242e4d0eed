#include "core/operands/any_address.h"
#include "core/shapes.h"
#include "kernels/index/gather_rows.h"
#include "kernels/index/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status GatherShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& index = ctx.InShape("Index");
  if (!x.known_rank() || !index.known_rank()) return ctx.Defer();
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, "Axis", "axis", x.rank(), &axis));
  if (x.rank() == 0) return InvalidArgument("'X' must have at least one dimension");
  if (index.rank() > 2 || (index.rank() == 2 && index[1] != 1 && index[1] >= 0))
    return InvalidArgument("'Index' must have the shape [n], [n, 1] or [], not ", index.ToString());
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("Index"), "Index"));
  if (!axis.known) return ctx.Defer();
  Shape out = x;
  if (index.rank() == 0)
    out.erase(static_cast<int>(axis.value));
  else
    out[static_cast<int>(axis.value)] = index[0];
  ctx.SetOut("Out", out, ctx.InDType("X"));
  if (axis.value == 0) ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

struct View {
  int64_t outer, inner;
  IndexRange range;
};

Status Look(const KernelContext& ctx, const Shape& x, View* view) {
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, "Axis", "axis", x.rank(), &axis));
  const int at = static_cast<int>(axis.value);
  view->outer = x.Product(0, at);
  view->inner = x.Product(at + 1, x.rank());
  view->range.size = x[at];
  return CheckIndices(ctx.In("Index"), view->range, "Index");
}

Status Gather(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  View v;
  HEDDLE_RETURN_IF_ERROR(Look(ctx, x.shape(), &v));
  GatherRows(ctx, x.raw(), ctx.In("Index"), v.range, v.outer,
             v.inner * static_cast<int64_t>(SizeOf(x.dtype())), ctx.Out("Out").mutable_raw());
  return Status::Ok();
}

Status GatherGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  const Tensor& index = ctx.In("Index");
  Tensor& out = ctx.Out("X@GRAD");
  View v;
  HEDDLE_RETURN_IF_ERROR(Look(ctx, out.shape(), &v));
  if (grad.numel() != v.outer * index.numel() * v.inner)
    return InvalidArgument("'Out@GRAD' of shape ", grad.shape().ToString(), " does not fit 'X' ",
                           out.shape().ToString(), " and 'Index' ", index.shape().ToString());
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  return ScatterAddRows(ctx, grad.raw(), index, v.range, v.outer, v.inner, out.dtype(),
                        out.mutable_raw());
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(gather) {
  op.Doc("Items of X along `axis` named by Index.")
      .Input("X", kAnyAddress)
      .Input("Index")
      .Input("Axis", kOptional | kShapeValue)
      .Output("Out")
      .Attr("axis", 0)
      .InferShape(GatherShape)
      .AnyKernel(Gather);
}
HEDDLE_OP(gather_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Index")
      .Input("Axis", kOptional)
      .Output("X@GRAD")
      .Attr("axis", 0)
      .InferShape(GradLikeInputs)
      .AnyKernel(GatherGrad);
}

HEDDLE_EXAMPLES(gather, R"(
example float32 2x1x6
in Axis int32 [1] 0
in Index int64 [0]
in X float32 [2, 1, 6] -0.2 -0.78 -0.34 0.68 -0.49 -0.64 0.39 0.54 0.1 0.83 0.24 -0.05
out Out float32 [0, 1, 6]

example float64 3x2
in Axis int32 [1] 1
in Index int32 [2] 1 1
in X float64 [3, 2] 2*4 1 6
out Out float64 [3, 2] 2*4 6 6

example float32 2x3, axis 1
attr axis INT 1
in Index int64 [2] 1 2
in X float32 [2, 3] 3 6 6 7 8 9
out Out float32 [2, 2] 6 6 8 9

example float32 3
in Index int64 [1] 1
in X float32 [3] -0.118 -0.192 -0.149
out Out float32 [1] -0.192

example bfloat16 2x1x6
in Axis int32 [1] 0
in Index int64 [0]
in X bfloat16 [2, 1, 6] -0.2 -0.78 -0.34 0.68 -0.49 -0.64 0.39 0.54 0.1 0.83 0.24 -0.05
out Out bfloat16 [0, 1, 6]
)")

HEDDLE_EXAMPLES(gather_grad, R"(
example float64 4
in Axis int32 [1] 0
in Index int64 [1] 3
in Out@GRAD float64 [1] 0.3
in X float64 [4] 0.07 -0.2 -0.47 0.33
out X@GRAD float64 [4] 0 0 0 0.3

example float64 4x3
in Index int32 [2] 1 1
in Out@GRAD float64 [2, 3] 0.7 -0.9 0.8 -0.1 -0.7 0.2
in X float64 [4, 3] 0.919 0.079 0.537 0.843 0.766 0.232 0.384 0.461 0.69 0.308 0.155 0.614
out X@GRAD float64 [4, 3] 0 0 0 0.6 -1.6 1 0*6

example float64 3
in Index int64 [1] 1
in Out@GRAD float64 [1] 0.5
in X float64 [3] 0.167 -0.291 0.419
out X@GRAD float64 [3] 0 0.5 0

example float32 4
in Axis int32 [1] 0
in Index int64 [1] 3
in Out@GRAD float32 [1] 0.3
in X float32 [4] 0.07 -0.2 -0.47 0.33
out X@GRAD float32 [4] 0 0 0 0.3
)")

#include "core/operands/any_address.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/index/gather_rows.h"
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

// flip and reverse: the elements of X in reverse order along some axes.
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/index_slice.h"

namespace heddle {
namespace {

// `known` is false while the axes are not.
Status FlipPart(const OpContext& ctx, const Shape& x, SliceSpec* part, bool* known) {
  *part = WholeSlice(x);
  IntArgs axes;
  HEDDLE_RETURN_IF_ERROR(
      ReadInts(ctx, "AxisTensor", ctx.IntList("axis").empty() ? Key("dims") : Key("axis"), &axes));
  *known = axes.known;
  if (!axes.known) return Status::Ok();
  for (int64_t a : axes.span()) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(a, x.rank()));
    if (x.rank() == 0) continue;
    part->start[axis] = x[axis] > 0 ? x[axis] - 1 : 0;
    part->step[axis] = -1;
  }
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> PrepareFlip(PrepareContext& ctx) {
  const Tensor& x = ctx.InVar("X")->tensor();
  SliceSpec part;
  bool known = false;
  if (Holds(ctx.InVar("AxisTensor"))) return std::unique_ptr<KernelState>();
  HEDDLE_RETURN_IF_ERROR(FlipPart(ctx, x.shape(), &part, &known));
  return std::unique_ptr<KernelState>(new CopyState(CopyOutOf(x.shape(), part, SizeOf(x.dtype()))));
}

Status FlipShape(ShapeContext& ctx) {
  if (ctx.InShape("X").known_rank()) {
    SliceSpec part;
    bool known = false;
    HEDDLE_RETURN_IF_ERROR(FlipPart(ctx, ctx.InShape("X"), &part, &known));
  }
  return SameShape(ctx);
}

Status Flip(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  if (ctx.has_state()) {
    ctx.State<CopyState>().copy.Run(ctx, x.raw(), out.mutable_raw());
    return Status::Ok();
  }
  SliceSpec part;
  bool known = false;
  HEDDLE_RETURN_IF_ERROR(FlipPart(ctx, x.shape(), &part, &known));
  CopyOutOf(x.shape(), part, SizeOf(x.dtype())).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(flip) {
  op.Doc("X backwards along `axis`.")
      .Input("X")
      .Input("AxisTensor", kOptional)
      .Output("Out")
      .Attr("axis", Ints{})
      .Attr("dims", Ints{})
      .InferShape(FlipShape)
      .Prepare(PrepareFlip)
      .AnyKernel(Flip);
}

HEDDLE_OP(reverse) {
  op.Doc("X backwards along `axis`.")
      .Input("X")
      .Input("AxisTensor", kOptional)
      .Output("Out")
      .Attr("axis", Ints{})
      .Attr("dims", Ints{})
      .InferShape(FlipShape)
      .Prepare(PrepareFlip)
      .AnyKernel(Flip);
}

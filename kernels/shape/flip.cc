// flip and reverse: the elements of X in reverse order along some axes.
#include "core/shapes.h"
#include "kernels/index/index_args.h"
#include "kernels/strided/index_slice.h"

namespace heddle {
namespace {

Status FlipPart(const OpContext& ctx, const Shape& x, SliceSpec* part) {
  *part = WholeSlice(x);
  for (int64_t a : AxisOrDims(ctx)) {
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
  HEDDLE_RETURN_IF_ERROR(FlipPart(ctx, x.shape(), &part));
  return std::unique_ptr<KernelState>(new CopyState(CopyOutOf(x.shape(), part, SizeOf(x.dtype()))));
}

Status FlipShape(ShapeContext& ctx) {
  if (ctx.InShape("X").known_rank()) {
    SliceSpec part;
    HEDDLE_RETURN_IF_ERROR(FlipPart(ctx, ctx.InShape("X"), &part));
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
  HEDDLE_RETURN_IF_ERROR(FlipPart(ctx, x.shape(), &part));
  CopyOutOf(x.shape(), part, SizeOf(x.dtype())).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(flip) {
  op.Doc("X backwards along `axis`.")
      .Input("X")
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
      .Output("Out")
      .Attr("axis", Ints{})
      .Attr("dims", Ints{})
      .InferShape(FlipShape)
      .Prepare(PrepareFlip)
      .AnyKernel(Flip);
}

HEDDLE_EXAMPLES(flip, R"(
example int32 1x1x2x4, axis -4 1 -2 -1
attr axis INTS [-4, 1, -2, -1]
in X int32 [1, 1, 2, 4] -2 -2 5 5 -7 8 6 -1
out Out int32 [1, 1, 2, 4] -1 6 8 -7 5 5 -2 -2

example float32 2x3, axis 0
attr axis INTS [0]
in X float32 [2, 3] 1 4 4 2 5 6
out Out float32 [2, 3] 2 5 6 1 4 4

example float64 4x3x1, axis 0 1 2
attr axis INTS [0, 1, 2]
in X float64 [4, 3, 1] 0.363 0.12 0.303 0.728 0.242 0.181 0.606 0.667 0.485 0.789 0.546 0.424
out Out float64 [4, 3, 1] 0.424 0.546 0.789 0.485 0.667 0.606 0.181 0.242 0.728 0.303 0.12 0.363

example float32 3x2x2, axis 0 1
attr axis INTS [0, 1]
in X float32 [3, 2, 2] -0.02 0.68 -0.44 0.4 -0.58 0.54 0.12 0.26 0.82 -0.16 -0.3 -0.72
out Out float32 [3, 2, 2] -0.3 -0.72 0.82 -0.16 0.12 0.26 -0.58 0.54 -0.44 0.4 -0.02 0.68
)")

HEDDLE_EXAMPLES(reverse, R"(
example float64 3x4, axis 0
attr axis INTS [0]
in X float64 [3, 4] 0.236 0.692 0.388 0.312 0.54 0.464 0.083 0.616 0.768 0.844 0.92 0.16
out Out float64 [3, 4] 0.768 0.844 0.92 0.16 0.54 0.464 0.083 0.616 0.236 0.692 0.388 0.312

example float64 3x4, axis 0 -1
attr axis INTS [0, -1]
in X float64 [3, 4] 0.232 0.308 0.69 0.766 0.919 0.537 0.461 0.079 0.155 0.384 0.614 0.843
out Out float64 [3, 4] 0.843 0.614 0.384 0.155 0.079 0.461 0.537 0.919 0.766 0.69 0.308 0.232

example float64 3x4, axis -1
attr axis INTS [-1]
in X float64 [3, 4] 0.155 0.614 0.766 0.461 0.079 0.919 0.843 0.69 0.308 0.384 0.232 0.537
out Out float64 [3, 4] 0.461 0.766 0.614 0.155 0.69 0.843 0.919 0.079 0.537 0.232 0.384 0.308

example float64 3x4x3, axis 0 2
attr axis INTS [0, 2]
in X float64 [3, 4, 3] 0.889 0.194 0.488 0.114 0.756 0.943 0.328 0.595 0.408 0.862 0.515 0.462 0.569
  0.168 0.355 0.088 0.622 0.542 0.969 0.675 0.301 0.435 0.729 0.141 0.275 0.248 0.382 0.702 0.916
  0.809 0.061 0.782 0.836 0.034 0.221 0.649
out Out float64 [3, 4, 3] 0.382 0.248 0.275 0.809 0.916 0.702 0.836 0.782 0.061 0.649 0.221 0.034
  0.355 0.168 0.569 0.542 0.622 0.088 0.301 0.675 0.969 0.141 0.729 0.435 0.488 0.194 0.889 0.943
  0.756 0.114 0.408 0.595 0.328 0.462 0.515 0.862

example float32 3x4, axis 0
attr axis INTS [0]
in X float32 [3, 4] 0.236 0.692 0.388 0.312 0.54 0.464 0.083 0.616 0.768 0.844 0.92 0.16
out Out float32 [3, 4] 0.768 0.844 0.92 0.16 0.54 0.464 0.083 0.616 0.236 0.692 0.388 0.312

example int32 3x4, axis 0
attr axis INTS [0]
in X int32 [3, 4] 1 1 0 0 1 1 0 1 0 1 1 1
out Out int32 [3, 4] 0 1*5 0 1 1 1 0 0

example int64 3x4, axis 0
attr axis INTS [0]
in X int64 [3, 4] 1 1 0 0 1 1 0 1 0 1 1 1
out Out int64 [3, 4] 0 1*5 0 1 1 1 0 0

example bool 3x4, axis 0
attr axis INTS [0]
in X bool [3, 4] 0 0 0 1 1 0 1 0 1 0 1 0
out Out bool [3, 4] 1 0 1 0 1 0 1 0*4 1
)")

// flip, reverse and roll: the elements of X in another order along some axes.
#include "core/shapes.h"
#include "kernels/index/index_args.h"
#include "kernels/strided/index_slice.h"

namespace heddle {
namespace {

// The first versions called the attribute "dims".
const Ints& AxesOf(const OpContext& ctx) {
  const Ints& axes = ctx.IntList("axis");
  return axes.empty() ? ctx.IntList("dims") : axes;
}

Status FlipPart(const OpContext& ctx, const Shape& x, SliceSpec* part) {
  *part = WholeSlice(x);
  for (int64_t a : AxesOf(ctx)) {
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

// How far each axis is rolled, in [0, size). Without axes the tensor is one long axis.
Status Shifts(const OpContext& ctx, const Shape& shape, int64_t sign,
              std::array<int64_t, Shape::kMaxRank>* shift) {
  IntArgs shifts;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "ShiftsTensor", "shifts", &shifts));
  const Ints& axes = AxesOf(ctx);
  const int expected = axes.empty() ? 1 : static_cast<int>(axes.size());
  if (shifts.n != expected)
    return InvalidArgument("there are ", shifts.n, " shifts for ", axes.size(), " axes");
  shift->fill(0);
  for (int i = 0; i < expected; ++i) {
    int axis = 0;
    if (!axes.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(axis, NormalAxis(axes[i], shape.rank()));
    }
    const int64_t size = shape.rank() == 0 ? 1 : shape[axis];
    if (size == 0) continue;
    int64_t& s = (*shift)[axis];
    s = (((s + sign * (shifts[i] % size)) % size) + size) % size;
  }
  return Status::Ok();
}

// Every rolled axis falls into two parts; each combination of parts is one copy.
Status RunRoll(const KernelContext& ctx, const Tensor& x, int64_t sign, Tensor& out) {
  const Shape shape = AxesOf(ctx).empty() ? Shape{x.numel()} : x.rank() == 0 ? Shape{1} : x.shape();
  std::array<int64_t, Shape::kMaxRank> shift;
  HEDDLE_RETURN_IF_ERROR(Shifts(ctx, shape, sign, &shift));
  int rolled[Shape::kMaxRank], count = 0;
  for (int i = 0; i < shape.rank(); ++i)
    if (shift[i] != 0) rolled[count++] = i;
  const auto strides = RowMajorStrides(shape);
  for (int parts = 0; parts < 1 << count; ++parts) {
    std::array<CopyDim, Shape::kMaxRank> dims;
    for (int i = 0; i < shape.rank(); ++i) dims[i] = {shape[i], strides[i], strides[i]};
    int64_t src = 0, dst = 0;
    for (int k = 0; k < count; ++k) {
      const int i = rolled[k];
      const int64_t s = shift[i];
      const bool tail = (parts >> k & 1) != 0;  // the last s items, which come to the front
      dims[i].n = tail ? s : shape[i] - s;
      (tail ? src : dst) += (tail ? shape[i] - s : s) * strides[i];
    }
    StridedCopy(SizeOf(x.dtype()), std::span(dims.data(), static_cast<size_t>(shape.rank())), src,
                dst)
        .Run(ctx, x.raw(), out.mutable_raw());
  }
  return Status::Ok();
}

Status Roll(KernelContext& ctx) { return RunRoll(ctx, ctx.In("X"), 1, ctx.Out("Out")); }
Status RollGrad(KernelContext& ctx) {
  return RunRoll(ctx, ctx.In("Out@GRAD"), -1, ctx.Out("X@GRAD"));
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
HEDDLE_OP(roll) {
  op.Doc("X moved by `shifts` places along `axis`; what leaves at one end comes back at the other.")
      .Input("X")
      .Input("ShiftsTensor", kOptional)
      .Output("Out")
      .Attr("shifts", Ints{})
      .Attr("axis", Ints{})
      .Attr("dims", Ints{})
      .InferShape(SameShape)
      .AnyKernel(Roll);
}
HEDDLE_OP(roll_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("ShiftsTensor", kOptional)
      .Output("X@GRAD")
      .Attr("shifts", Ints{})
      .Attr("axis", Ints{})
      .Attr("dims", Ints{})
      .InferShape(GradLikeInputs)
      .AnyKernel(RollGrad);
}

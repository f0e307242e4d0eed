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

HEDDLE_EXAMPLES(roll, R"(
example float32 3x3, axis 0 1
attr axis LONGS [0, 1]
in ShiftsTensor int32 [2] 1 1
in X float32 [3, 3] 0 1 2 3 4 5 6 7 8
out Out float32 [3, 3] 8 6 7 2 0 1 5 3 4

example float64 2x4x3, axis 0 -2, shifts 101 -1
attr axis LONGS [0, -2]
attr shifts LONGS [101, -1]
in X float64 [2, 4, 3] 0.72 0.68 0.64 0.28 0.48 0.76 0.6 0.24 0.32 0.12 0.52 0.04 0.16 0.36 0.2 0.08
  0.8 0.919 0.839 0.4 0.959 0.56 0.44 0.879
out Out float64 [2, 4, 3] 0.08 0.8 0.919 0.839 0.4 0.959 0.56 0.44 0.879 0.16 0.36 0.2 0.28 0.48
  0.76 0.6 0.24 0.32 0.12 0.52 0.04 0.72 0.68 0.64

example int32 4x4, axis 0 1, shifts -4 -4
attr axis LONGS [0, 1]
attr shifts LONGS [-4, -4]
in X int32 [4, 4] -6 -1 -1 -3 -1 1 -1 0 -6 -6 1 -7 -4 0 -6 -7
out Out int32 [4, 4] -6 -1 -1 -3 -1 1 -1 0 -6 -6 1 -7 -4 0 -6 -7

example float32 4x1, axis 1, shifts 1
attr axis LONGS [1]
attr shifts LONGS [1]
in X float32 [4, 1] -0.06 0.27 0.59 -0.39
out Out float32 [4, 1] -0.06 0.27 0.59 -0.39

example int64 3x3, axis 0 1
attr axis LONGS [0, 1]
in ShiftsTensor int32 [2] 1 1
in X int64 [3, 3] 7 4 4 5 8 0 7 5 3
out Out int64 [3, 3] 3 7 5 4 7 4 0 5 8

example complex64 3x3, axis 0 1
attr axis LONGS [0, 1]
in ShiftsTensor int32 [2] 1 1
in X complex64 [3, 3] 0+0.8j 1+0.3j 2+0.5j 3-0.7j 4-0.8j 5+0.6j 6-0.3j 7+0.1j 8-0.5j
out Out complex64 [3, 3] 8-0.5j 6-0.3j 7+0.1j 2+0.5j 0+0.8j 1+0.3j 5+0.6j 3-0.7j 4-0.8j
)")

HEDDLE_EXAMPLES(roll_grad, R"(
example float64 1x5, axis 0 1, shifts 6 3
attr axis LONGS [0, 1]
attr shifts LONGS [6, 3]
in Out@GRAD float64 [1, 5] -0.8 0.4 0.1 -0.3 -0.2
in X float64 [1, 5] -0.642 -0.712 -0.782 -0.502 -0.572
out X@GRAD float64 [1, 5] -0.3 -0.2 -0.8 0.4 0.1

example float64 4x1, axis 1, shifts 1
attr axis LONGS [1]
attr shifts LONGS [1]
in Out@GRAD float64 [4, 1] 0.9 0.7 0.2 0.8
in X float64 [4, 1] -0.39 -0.06 0.59 0.27
out X@GRAD float64 [4, 1] 0.9 0.7 0.2 0.8

example float32 1x5, axis 0 1, shifts 6 3
attr axis LONGS [0, 1]
attr shifts LONGS [6, 3]
in Out@GRAD float32 [1, 5] -0.8 0.4 0.1 -0.3 -0.2
in X float32 [1, 5] -0.642 -0.712 -0.782 -0.502 -0.572
out X@GRAD float32 [1, 5] -0.3 -0.2 -0.8 0.4 0.1
)")

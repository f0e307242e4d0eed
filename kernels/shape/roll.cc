// roll: the elements of X shifted along some axes; what leaves at one end enters at the other.
#include <array>

#include "core/shapes.h"
#include "kernels/index/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Shift of each axis, in [0, size). Without axes the tensor is one long axis.
Status Shifts(const OpContext& ctx, const Shape& shape, int64_t sign,
              std::array<int64_t, Shape::kMaxRank>* shift) {
  IntArgs shifts;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "ShiftsTensor", "shifts", &shifts));
  const Ints& axes = AxisOrDims(ctx);
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
  const Shape shape = AxisOrDims(ctx).empty() ? Shape{x.numel()}
                      : x.rank() == 0         ? Shape{1}
                                              : x.shape();
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
  const Tensor& dout = ctx.In("Out@GRAD");
  Tensor& dx = ctx.Out("X@GRAD");
  if (!(dout.shape() == dx.shape()) || dout.dtype() != dx.dtype())
    return InvalidArgument("Out@GRAD ", Name(dout.dtype()), " ", dout.shape().ToString(),
                           " must be as X, ", Name(dx.dtype()), " ", dx.shape().ToString());
  return RunRoll(ctx, dout, -1, dx);
}

}  // namespace
}  // namespace heddle

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

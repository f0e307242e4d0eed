// roll: the elements of X shifted along some axes; what leaves at one end enters at the other.
#include <array>

#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status RollAxes(const OpContext& ctx, IntArgs* axes) {
  return ReadInts(ctx, "AxisTensor", ctx.IntList("axis").empty() ? Key("dims") : Key("axis"), axes);
}

// Shift of each axis, in [0, size). Without axes the tensor is one long axis.
Status Shifts(const OpContext& ctx, const Shape& shape, int64_t sign,
              std::array<int64_t, Shape::kMaxRank>* shift) {
  IntArgs shifts;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "ShiftsTensor", "shifts", &shifts));
  IntArgs axes;
  HEDDLE_RETURN_IF_ERROR(RollAxes(ctx, &axes));
  const bool whole = !Holds(ctx.InVar("AxisTensor")) && axes.n == 0;
  const int expected = whole ? 1 : axes.n;
  if (shifts.n != expected)
    return InvalidArgument("there are ", shifts.n, " shifts for ", axes.n, " axes");
  shift->fill(0);
  for (int i = 0; i < expected; ++i) {
    int axis = 0;
    if (!whole) {
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
  const bool whole = !Holds(ctx.InVar("AxisTensor")) && AxisOrDims(ctx).empty();
  const Shape shape = whole ? Shape{x.numel()} : x.rank() == 0 ? Shape{1} : x.shape();
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
      .Input("AxisTensor", kOptional)
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
      .Input("AxisTensor", kOptional)
      .Output("X@GRAD")
      .Attr("shifts", Ints{})
      .Attr("axis", Ints{})
      .Attr("dims", Ints{})
      .InferShape(GradLikeInputs)
      .AnyKernel(RollGrad);
}

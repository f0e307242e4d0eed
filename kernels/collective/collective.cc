#include "kernels/collective/collective.h"

#include <cstring>

#include "core/memory/watched_bytes.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"

namespace heddle {
namespace {

// The axis as an index; an error where the shape has none.
Result<int> AxisOf(const Shape& shape, int axis) {
  if (shape.rank() == 0)
    return InvalidArgument("X must have a dimension to gather or to cut along; it is a scalar");
  return axis < 0 ? axis + shape.rank() : axis;
}

}  // namespace

void ReducibleKernel(OpDef& op, KernelFn kernel) {
  op.Kernel({DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kU8,
             DType::kI16, DType::kI32, DType::kI64},
            kernel);
}

void CopyWhole(const KernelContext& ctx, const Tensor& from, Tensor* to) {
  if (to->raw() != from.raw())
    CopyBytes(ctx, to->mutable_raw(), from.raw(), static_cast<int64_t>(from.bytes()));
}

Status CheckCount(const Communicator& ranks, int64_t nranks) {
  if (nranks == ranks.size()) return Status::Ok();
  return InvalidArgument("is made for ", nranks, " ranks; this group has ", ranks.size());
}

Status CheckNranks(int64_t nranks) {
  if (nranks > 0) return Status::Ok();
  return InvalidArgument("attribute nranks must be positive; it is ", nranks);
}

Result<Shape> Longer(const Shape& shape, int axis, int64_t times) {
  if (!shape.known_rank()) return shape;
  HEDDLE_ASSIGN_OR_RETURN(const int at, AxisOf(shape, axis));
  Shape longer = shape;
  if (longer[at] < 0) return longer;
  if (__builtin_mul_overflow(longer[at], times, &longer[at]))
    return ResourceExhausted(times, " times ", shape.ToString(),
                             " are more elements than can be stored");
  return longer.is_static() ? CheckedShape(longer.dims(), "the result") : longer;
}

Result<Shape> Shorter(const Shape& shape, int axis, int64_t by) {
  if (!shape.known_rank()) return shape;
  HEDDLE_ASSIGN_OR_RETURN(const int at, AxisOf(shape, axis));
  Shape shorter = shape;
  if (shorter[at] < 0) return shorter;
  if (shorter[at] % by != 0)
    return InvalidArgument("dimension ", at, " of X must be a multiple of ", by, "; X is ",
                           shape.ToString());
  shorter[at] /= by;
  return shorter;
}

Status PartShape(ShapeContext& ctx) {
  const Key in = OperandOf(ctx);
  HEDDLE_RETURN_IF_ERROR(CheckNranks(ctx.Int("nranks")));
  HEDDLE_ASSIGN_OR_RETURN(const Shape part, Shorter(ctx.InShape(in), 0, ctx.Int("nranks")));
  ctx.SetOut(ResultOf(ctx), part, ctx.InDType(in));
  return Status::Ok();
}

Tensor CopyStretch(const KernelContext& ctx, const Tensor& whole, int64_t count, int64_t at) {
  Tensor stretch = ctx.Scratch(whole.dtype(), Shape({whole.numel() / count}));
  const size_t bytes = stretch.bytes();
  if (bytes > 0)
    WatchedMemcpy(stretch.mutable_raw(),
                  static_cast<const std::byte*>(whole.raw()) + bytes * static_cast<size_t>(at),
                  bytes);
  return stretch;
}

}  // namespace heddle

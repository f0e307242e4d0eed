#include "kernels/collective/collective.h"

#include "kernels/elementwise/convert.h"

namespace heddle {
namespace {

// The axis as an index; an error where the shape has none.
Result<int> AxisOf(const Shape& shape, int axis) {
  if (shape.rank() == 0)
    return InvalidArgument("X must have a dimension to gather or to cut along; it is a scalar");
  return axis < 0 ? axis + shape.rank() : axis;
}

}  // namespace

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
  if (longer[at] >= 0) longer[at] *= times;
  return longer;
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

}  // namespace heddle

// write_to_array: stores an item of a tensor array. Its gradient is read_from_array.
#include "core/operands/slot_kinds.h"
#include "core/operands/window.h"
#include "kernels/index/index_value.h"

namespace heddle {
namespace {

constexpr int64_t kMaxItems = int64_t{1} << 24;  // a larger index is a mistake, not a wish

// The array is planned as its items are; a variable that holds nothing tells nothing about them.
Status ItemShape(ShapeContext& ctx) {
  if (!ctx.HasIn("X")) return ctx.Defer();
  ctx.SetOut("Out", ctx.InShape("X"), ctx.InDType("X"));
  return Status::Ok();
}

// Out[I] = X; the array grows as needed. A variable that holds nothing only makes it grow.
Status Write(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, ScalarIn(ctx, "I"));
  if (at < 0 || at >= kMaxItems)
    return OutOfRange("'I' is ", at, "; expected an index from 0 to ", kMaxItems - 1);
  TensorArray& array = ctx.OutVar("Out")->mutable_array();
  const auto i = static_cast<size_t>(at);
  if (i >= array.size()) array.resize(i + 1);
  if (const Tensor* const x = ctx.InOpt("X")) CopyItem(ctx, *x, i, &array);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(write_to_array) {
  op.Doc("Item I of the array Out becomes a copy of X.")
      .Input("X", kOptional | kByStrides)
      .Input("I")
      .Output("Out", kAnyKind | kArrayOnly)
      .InferShape(ItemShape)
      .AnyKernel(Write);
}

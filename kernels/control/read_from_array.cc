// read_from_array: copies an item out of a tensor array. Its gradient is write_to_array.
#include "kernels/index/index_value.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Out = X[I]. As a gradient (X_W is the tensor once written): zeros where nothing came back.
Status Read(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, ScalarIn(ctx, "I"));
  const Value* x = ctx.InVar("X");
  const size_t n = x != nullptr && x->is_array() && x->initialized() ? x->array().size() : 0;
  if (at >= 0 && static_cast<size_t>(at) < n) {
    const Tensor& item = x->array()[static_cast<size_t>(at)];
    if (item.initialized()) {
      Tensor& out = ctx.Alloc("Out", item.dtype(), item.shape());
      CopyBytes(ctx, item.raw(), out.mutable_raw(), item.bytes());
      if (item.has_lod()) out.set_lod(item.lod());
      return Status::Ok();
    }
  }
  const Tensor* like = ctx.InOpt("X_W");
  if (like == nullptr)
    return OutOfRange("item ", at, " of a tensor array with ", n, " items was never written");
  Tensor& out = ctx.Alloc("Out", like->dtype(), like->shape());
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  if (like->has_lod()) out.set_lod(like->lod());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(read_from_array) {
  op.Doc("A copy of item I of the array X.")
      .Input("X", kOptional | kAnyKind)
      .Input("I")
      .Input("X_W", kOptional)
      .Output("Out")
      .AnyKernel(Read);
}

HEDDLE_EXAMPLES(read_from_array, R"(
example float32
in X array 2
item float32 [2] 5 -0
item float32 [1, 3] -2 -2 6
in I int64 [1] 1
out Out float32 [1, 3] -2 -2 6

example int64
in X array 2
item int64 [2] -2 -5
item int64 [1, 3] -4 2 0
in I int64 [1] 1
out Out int64 [1, 3] -4 2 0

example float64
in X array 2
item float64 [2] 4 3
item float64 [1, 3] -1 3 2
in I int64 [1] 1
out Out float64 [1, 3] -1 3 2
)")

// Tensor arrays: writing, reading and counting items. The gradient of a write is a read and the
// other way round, so there are no gradient operators.
#include "core/shapes.h"
#include "kernels/index/index_value.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

constexpr int64_t kMaxItems = int64_t{1} << 24;  // a larger index is a mistake, not a wish

// Out[I] = X; the array grows as needed. A variable that holds nothing only makes it grow.
Status Write(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, ScalarIn(ctx, "I"));
  if (at < 0 || at >= kMaxItems)
    return OutOfRange("'I' is ", at, "; expected an index from 0 to ", kMaxItems - 1);
  TensorArray& array = ctx.OutVar("Out")->mutable_array();
  const auto i = static_cast<size_t>(at);
  if (i >= array.size()) array.resize(i + 1);
  if (const Tensor* x = ctx.InOpt("X")) CopyTensor(ctx, *x, &array[i]);
  return Status::Ok();
}

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

Status LengthShape(ShapeContext& ctx) {
  ctx.SetOut("Out", Shape{1}, DType::kI64);
  return Status::Ok();
}

Status Length(KernelContext& ctx) {
  const Value* x = ctx.InVar("X");
  const bool array = x != nullptr && x->is_array() && x->initialized();
  ctx.Out("Out").mutable_data<int64_t>()[0] = array ? static_cast<int64_t>(x->array().size()) : 0;
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(write_to_array) {
  op.Doc("Item I of the array Out becomes a copy of X.")
      .Input("X", kOptional)
      .Input("I")
      .Output("Out")
      .AnyKernel(Write);
}
HEDDLE_OP(read_from_array) {
  op.Doc("A copy of item I of the array X.")
      .Input("X", kOptional)
      .Input("I")
      .Input("X_W", kOptional)
      .Output("Out")
      .AnyKernel(Read);
}
HEDDLE_OP(lod_array_length) {
  op.Doc("The number of items of the array X.")
      .Input("X", kOptional)
      .Output("Out")
      .InferShape(LengthShape)
      .AnyKernel(Length);
}

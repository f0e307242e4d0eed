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
      .Input("X", kOptional | kAnyKind)
      .Input("I")
      .Input("X_W", kOptional)
      .Output("Out")
      .AnyKernel(Read);
}
HEDDLE_OP(lod_array_length) {
  op.Doc("The number of items of the array X.")
      .Input("X", kOptional | kAnyKind)
      .Output("Out")
      .InferShape(LengthShape)
      .AnyKernel(Length);
}

HEDDLE_EXAMPLES(write_to_array, R"(
example two items, one anew
in x float32 [2] 1 2
in y float32 [3] 3 4 5
in i int64 [1] 0
in j int64 [1] 1
var a tensor_array float32
op write_to_array X=x I=i -> Out=a
op write_to_array X=y I=j -> Out=a
op write_to_array X=y I=i -> Out=a
op read_from_array X=a I=i -> Out=p
op read_from_array X=a I=j -> Out=q
op lod_array_length X=a -> Out=n
out p float32 [3] 3 4 5
out q float32 [3] 3 4 5
out n int64 [1] 2

example the first item
in X float32 [2, 2] 0.2 0.92 0.33 0.21
in I int64 [1] 0
out Out array 1
item float32 [2, 2] 0.2 0.92 0.33 0.21

example int64
in X int64 [3] 7 9 6
in I int64 [1] 0
out Out array 1
item int64 [3] 7 9 6
)")

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

HEDDLE_EXAMPLES(lod_array_length, R"(
example three items
in X array 3
item float32 [1] 0.34
item float32 [2] 0.39 -0.43
item float32 [2] -0.18 0.92
out Out int64 [1] 3

example none
in X array 0
out Out int64 [1] 0
)")

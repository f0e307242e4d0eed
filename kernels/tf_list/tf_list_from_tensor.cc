#include "kernels/strided/strided_copy.h"
#include "kernels/tf_list/list_items.h"

namespace heddle {
namespace {

// Rows `begin` to `end` of a tensor, with memory of their own; `keep`: with the first axis.
Tensor Rows(const KernelContext& ctx, const Tensor& from, int64_t begin, int64_t end, bool keep) {
  Shape shape = from.shape();
  const size_t row = static_cast<size_t>(shape.Product(1, shape.rank())) * SizeOf(from.dtype());
  if (keep)
    shape[0] = end - begin;
  else
    shape.erase(0);
  Tensor made = ctx.Scratch(from.dtype(), shape);
  if (made.numel() > 0)
    CopyBytes(ctx, static_cast<const std::byte*>(from.raw()) + static_cast<size_t>(begin) * row,
              made.mutable_raw(), made.bytes());
  return made;
}

Status NeedsRows(const Tensor& t) {
  if (t.rank() > 0) return Status::Ok();
  return InvalidArgument("'tensor' is a scalar, which has no rows");
}

Status FromTensor(KernelContext& ctx) {
  const Tensor& x = ctx.In("tensor");
  HEDDLE_RETURN_IF_ERROR(NeedsRows(x));
  if (x.dim(0) > kMostListItems)
    return InvalidArgument("a list of ", x.dim(0), " items; expected at most ", kMostListItems);
  TensorArray& out = ctx.OutVar("Out")->mutable_array();
  out.clear();
  for (int64_t i = 0; i < x.dim(0); ++i) out.push_back(Rows(ctx, x, i, i + 1, false));
  return Status::Ok();
}

Status Split(KernelContext& ctx) {
  const Tensor& x = ctx.In("tensor");
  HEDDLE_RETURN_IF_ERROR(NeedsRows(x));
  TensorArray made;
  int64_t at = 0;
  for (int64_t n : ToInts(ctx.In("lengths"))) {
    if (n < 0 || n > x.dim(0) - at)
      return InvalidArgument("'lengths' cuts ", n, " rows behind ", at, " of ", x.dim(0));
    made.push_back(Rows(ctx, x, at, at + n, true));
    at += n;
  }
  if (at != x.dim(0)) return InvalidArgument("'lengths' names ", at, " of ", x.dim(0), " rows");
  ctx.OutVar("Out")->mutable_array() = std::move(made);
  return Status::Ok();
}

Status Scatter(KernelContext& ctx) {
  const Tensor& x = ctx.In("tensor");
  HEDDLE_RETURN_IF_ERROR(NeedsRows(x));
  CallHeap heap(ctx);
  const std::pmr::vector<int64_t> places = IntsIn(ctx.In("indices"), &heap);
  if (std::ssize(places) != x.dim(0))
    return InvalidArgument("'indices' has ", places.size(), " places for ", x.dim(0), " rows");
  HEDDLE_ASSIGN_OR_RETURN(TensorArray* const out, ListOut(ctx));
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t at = places[i];
    const bool grows = ctx.Bool("resize") && at >= 0 && at < kMostListItems;
    if (at < 0 || (at >= std::ssize(*out) && !grows))
      return OutOfRange("item ", at, " of a list of ", out->size(), " items cannot be set");
    if (at >= std::ssize(*out)) out->resize(static_cast<size_t>(at) + 1);
    const auto row = static_cast<int64_t>(i);
    (*out)[static_cast<size_t>(at)] = Rows(ctx, x, row, row + 1, false);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_list_from_tensor) {
  op.Doc("the rows of tensor as a list").Input("tensor").Output("Out").AnyKernel(FromTensor);
}

HEDDLE_OP(tf_list_split) {
  op.Doc("tensor cut along its first axis into parts of these lengths");
  op.Input("tensor").Input("lengths").Output("Out").AnyKernel(Split);
}

HEDDLE_OP(tf_list_scatter) {
  op.Doc(
      "list with the rows of tensor at indices, the last of equal ones; without list, Out changes "
      "in "
      "place");
  op.Input("list", kAnyKind | kOptional).Input("tensor").Input("indices").Output("Out");
  op.Attr("resize", false).AnyKernel(Scatter);
}

HEDDLE_EXAMPLES(tf_list_from_tensor, R"(
example two rows
in tensor float32 [2, 2] 1 2 3 4
out Out array 2
item float32 [2] 1 2
item float32 [2] 3 4
)")

HEDDLE_EXAMPLES(tf_list_split, R"(
example three rows, in two parts
in tensor float32 [3, 1] 1 2 3
in lengths int64 [2] 2 1
out Out array 2
item float32 [2, 1] 1 2
item float32 [1, 1] 3
)")

HEDDLE_EXAMPLES(tf_list_scatter, R"(
example in the reverse order
in x float32 [2, 2] 1 2 3 4
in n int32 [] 2
in i int32 [2] 1 0
var l tensor_array float32
var m tensor_array float32
op tf_list_reserve num_elements=n -> Out=l
op tf_list_scatter list=l tensor=x indices=i -> Out=m
op tf_list_stack list=m -> Out=y
out y float32 [2, 2] 3 4 1 2
)")

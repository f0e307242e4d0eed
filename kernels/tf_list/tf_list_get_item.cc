#include <numeric>
#include <span>

#include "kernels/strided/strided_copy.h"
#include "kernels/tf_list/list_items.h"

namespace heddle {
namespace {

Status GetItem(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* list, ListIn(ctx, "list"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, ScalarIn(ctx, "index"));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor item, ItemOrZeros(ctx, *list, at));
  Tensor& out = ctx.Alloc("Out", item.dtype(), item.shape());
  CopyBytes(ctx, item.raw(), out.mutable_raw(), item.bytes());
  return Status::Ok();
}

// The shape that a list of no items stacks to.
Result<Shape> NoItems(const KernelContext& ctx) {
  Shape shape{0};
  HEDDLE_ASSIGN_OR_RETURN(const Shape named, ElementShapeIn(ctx));
  if (named.known_rank())
    for (int64_t d : named)
      if (shape.rank() < Shape::kMaxRank) shape.push_back(std::max<int64_t>(d, 0));
  return shape;
}

// Items on a new first axis.
Status StackItems(KernelContext& ctx, const TensorArray& list, std::span<const int64_t> places) {
  if (places.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, NoItems(ctx));
    ctx.Alloc("Out", DTypeFromProto(ctx.Int("dtype")), shape);
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const Tensor first, ItemOrZeros(ctx, list, places[0]));
  if (first.rank() == Shape::kMaxRank) return InvalidArgument("items of too many dimensions");
  Shape shape = first.shape();
  shape.insert(0, std::ssize(places));
  Tensor& out = ctx.Alloc("Out", first.dtype(), shape);
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  for (int64_t at : places) {
    HEDDLE_ASSIGN_OR_RETURN(const Tensor item, ItemOrZeros(ctx, list, at));
    if (item.dtype() != first.dtype() || item.shape() != first.shape())
      return InvalidArgument("item ", at, " (", Name(item.dtype()), " ", item.shape().ToString(),
                             ") cannot be stacked with one of ", Name(first.dtype()), " ",
                             first.shape().ToString());
    if (item.numel() > 0) CopyBytes(ctx, item.raw(), to, item.bytes());
    to += item.bytes();
  }
  return Status::Ok();
}

Status Stack(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* list, ListIn(ctx, "list"));
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> places(list->size(), &heap);
  std::iota(places.begin(), places.end(), 0);
  return StackItems(ctx, *list, places);
}

Status Gather(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* list, ListIn(ctx, "list"));
  CallHeap heap(ctx);
  return StackItems(ctx, *list, IntsIn(ctx.In("indices"), &heap));
}

// Items joined along their first axis, and how many rows each had.
Status Concat(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* list, ListIn(ctx, "list"));
  Ints lengths;
  TensorArray items;
  int64_t rows = 0;
  for (int64_t i = 0; i < std::ssize(*list); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(Tensor item, ItemOrZeros(ctx, *list, i));
    if (item.rank() == 0) return InvalidArgument("item ", i, " is a scalar, which has no rows");
    Shape rest = item.shape(), wanted = items.empty() ? rest : items[0].shape();
    rest[0] = wanted[0] = 0;
    if (rest != wanted || (!items.empty() && item.dtype() != items[0].dtype()))
      return InvalidArgument("item ", i, " (", item.shape().ToString(),
                             ") cannot be joined to item 0 (", items[0].shape().ToString(), ")");
    lengths.push_back(item.dim(0));
    rows += item.dim(0);
    items.push_back(std::move(item));
  }
  HEDDLE_ASSIGN_OR_RETURN(Shape shape, NoItems(ctx));
  if (!items.empty()) shape = items[0].shape();
  if (!items.empty()) shape[0] = rows;
  const DType dtype = items.empty() ? DTypeFromProto(ctx.Int("dtype")) : items[0].dtype();
  Tensor& out = ctx.Alloc("Out", dtype, shape);
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  for (const Tensor& item : items) {
    if (item.numel() > 0) CopyBytes(ctx, item.raw(), to, item.bytes());
    to += item.bytes();
  }
  Tensor& counts = ctx.Alloc("lengths", DType::kI64, Shape{std::ssize(lengths)});
  std::copy(lengths.begin(), lengths.end(), counts.mutable_data<int64_t>());
  return Status::Ok();
}

void Define(OpDef& op, std::string_view doc) {
  op.Doc(doc).Input("list", kAnyKind).Input("element_shape", kOptional).Output("Out");
  op.Attr("dtype", 5);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_list_get_item) {
  Define(op, "a copy of the item of list at index; zeros where none was set");
  op.Input("index").AnyKernel(GetItem);
}
HEDDLE_OP(tf_list_stack) {
  Define(op, "the items of list on a new first axis");
  op.AnyKernel(Stack);
}
HEDDLE_OP(tf_list_gather) {
  Define(op, "the items of list at indices on a new first axis");
  op.Input("indices").AnyKernel(Gather);
}
HEDDLE_OP(tf_list_concat) {
  Define(op, "the items of list joined along their first axis, and how many rows each had");
  op.Output("lengths").AnyKernel(Concat);
}

HEDDLE_EXAMPLES(tf_list_get_item, R"(
example the second row
in x float32 [2, 2] 1 2 3 4
in i int32 [] 1
var l tensor_array float32
op tf_list_from_tensor tensor=x -> Out=l
op tf_list_get_item list=l index=i -> Out=y
out y float32 [2] 3 4
)")

HEDDLE_EXAMPLES(tf_list_stack, R"(
example rows and back
in x float32 [2, 2] 1 2 3 4
var l tensor_array float32
op tf_list_from_tensor tensor=x -> Out=l
op tf_list_stack list=l -> Out=y
out y float32 [2, 2] 1 2 3 4

example no items
in n int32 [] 0
in s int32 [2] -1 3
var l tensor_array float32
op tf_list_reserve num_elements=n -> Out=l
op tf_list_stack list=l element_shape=s -> Out=y
out y float32 [0, 0, 3]
)")

HEDDLE_EXAMPLES(tf_list_gather, R"(
example one twice
in x float32 [2, 2] 1 2 3 4
in i int32 [3] 1 0 1
var l tensor_array float32
op tf_list_from_tensor tensor=x -> Out=l
op tf_list_gather list=l indices=i -> Out=y
out y float32 [3, 2] 3 4 1 2 3 4
)")

HEDDLE_EXAMPLES(tf_list_concat, R"(
example items of different lengths
in x float32 [3] 1 2 3
in n int64 [2] 1 2
var l tensor_array float32
op tf_list_split tensor=x lengths=n -> Out=l
op tf_list_concat list=l -> Out=y lengths=m
out y float32 [3] 1 2 3
out m int64 [2] 1 2
)")

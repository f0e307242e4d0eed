#include "core/interrupts.h"
#include "core/memory/bytes.h"
#include "core/operands/slot_kinds.h"
#include "kernels/lists/list_items.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status ItemShape(ShapeContext& ctx) {
  const Tensor* index = ctx.InValue("index");
  int64_t at = -1;
  if (index != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(at, ScalarOf(*index, "index"));
  }
  HEDDLE_ASSIGN_OR_RETURN(const ItemMeta item, MetaOf(ctx, KnownList(ctx), at));
  if (item.dtype == DType::kUnknown) return ctx.Defer();
  ctx.SetOut("Out", item.shape, item.dtype);
  return Status::Ok();
}

Status GetItem(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* list, ListIn(ctx, "list"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, ScalarIn(ctx, "index"));
  return PutItem(ctx, *list, at, ctx.Out("Out"));
}

// The shape that a list of no items stacks to.
Shape NoItems(const Shape& named) {
  Shape shape{0};
  if (named.known_rank())
    for (int64_t d : named)
      if (shape.rank() < Shape::kMaxRank) shape.push_back(std::max<int64_t>(d, 0));
  return shape;
}

// That of so many items like the one at `at` on a new first axis.
Status StackedShape(ShapeContext& ctx, int64_t count, int64_t at) {
  if (count == 0) {
    const Tensor* given = ctx.InValue("element_shape");
    if (given == nullptr && ctx.InVar("element_shape") != nullptr) return ctx.Defer();
    HEDDLE_ASSIGN_OR_RETURN(const Shape named, NamedShape(given));
    ctx.SetOut("Out", NoItems(named), DTypeFromProto(ctx.Int("dtype")));
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const ItemMeta item, MetaOf(ctx, KnownList(ctx), at));
  if (item.dtype == DType::kUnknown) return ctx.Defer();
  if (item.shape.rank() == Shape::kMaxRank) return InvalidArgument("items of too many dimensions");
  Shape shape = item.shape;
  shape.insert(0, count);
  ctx.SetOut("Out", shape, item.dtype);
  return Status::Ok();
}

// Items on a new first axis, in an output that has its shape.
template <typename PlaceOf>
Status PutItems(KernelContext& ctx, const TensorArray& list, int64_t count, PlaceOf place_of) {
  Tensor& out = ctx.Out("Out");
  if (count == 0) return Status::Ok();
  if (list.empty()) return OutOfRange("item ", place_of(0), " of a list of 0 items");
  Shape shape = out.shape();
  shape.erase(0);
  const size_t bytes = BytesFor(out.dtype(), shape);
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  for (int64_t i = 0; i < count; ++i, to += bytes)
    HEDDLE_RETURN_IF_ERROR(PutItem(ctx, list, place_of(i), out.dtype(), shape, to));
  return Status::Ok();
}

// The same of no item, or of one, where no shape function has told how many there are.
Status StackFew(KernelContext& ctx, const TensorArray& list) {
  if (list.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const Shape named, ElementShapeIn(ctx));
    ctx.Alloc("Out", DTypeFromProto(ctx.Int("dtype")), NoItems(named));
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const Tensor item, ItemOrZeros(ctx, list, 0));
  if (item.rank() == Shape::kMaxRank) return InvalidArgument("items of too many dimensions");
  Shape shape = item.shape();
  shape.insert(0, 1);
  Tensor& out = ctx.Alloc("Out", item.dtype(), shape);
  CopyBytes(ctx, item.raw(), out.mutable_raw(), item.bytes());
  return Status::Ok();
}

// Whether an operand says how many items there are, so that a plan knows the shape.
bool Counted(const OpContext& ctx) { return ctx.InVar("num_elements") != nullptr; }

Status StackShape(ShapeContext& ctx) {
  const TensorArray* list = KnownList(ctx);
  int64_t count = 0;
  if (Counted(ctx)) {
    const Tensor* given = ctx.InValue("num_elements");
    if (given == nullptr) return ctx.Defer();
    HEDDLE_ASSIGN_OR_RETURN(count, ScalarOf(*given, "num_elements"));
  } else {
    if (list == nullptr || list->empty() || PlannedItem(list) != nullptr) return ctx.Defer();
    count = std::ssize(*list);
  }
  if (count < 0) return InvalidArgument("'num_elements' is ", count, "; expected 0 or more");
  return StackedShape(ctx, count, 0);
}

Status Stack(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* list, ListIn(ctx, "list"));
  const int64_t count = std::ssize(*list);
  if (Counted(ctx)) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t given, ScalarIn(ctx, "num_elements"));
    if (given != count) return InvalidArgument("the list has ", count, " items; expected ", given);
  } else if (count < 2) {  // which look in a shape function like lists that it does not know
    return StackFew(ctx, *list);
  }
  return PutItems(ctx, *list, count, [](int64_t i) { return i; });
}

Status GatherShape(ShapeContext& ctx) {
  const Shape& indices = ctx.InShape("indices");
  if (!indices.is_static()) return ctx.Defer();
  // Items of a list may differ: the first of those that are taken has the shape.
  const Tensor* places = ctx.InValue("indices");
  const TensorArray* list = KnownList(ctx);
  int64_t first = places != nullptr && places->numel() > 0 ? IntAt(*places, 0) : 0;
  if (list == nullptr || first < 0 || first >= std::ssize(*list)) first = 0;
  return StackedShape(ctx, indices.numel(), first);
}

Status Gather(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* list, ListIn(ctx, "list"));
  const Tensor& indices = ctx.In("indices");
  return PutItems(ctx, *list, indices.numel(), [&](int64_t i) { return IntAt(indices, i); });
}

// Items joined along their first axis, and how many rows each had.
Status Concat(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* list, ListIn(ctx, "list"));
  Ints lengths;
  TensorArray items;
  int64_t rows = 0;
  for (const int64_t i : Watched(std::ssize(*list))) {
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
  HEDDLE_ASSIGN_OR_RETURN(const Shape named, ElementShapeIn(ctx));
  Shape shape = NoItems(named);
  if (!items.empty()) shape = items[0].shape();
  if (!items.empty()) shape[0] = rows;
  const DType dtype = items.empty() ? DTypeFromProto(ctx.Int("dtype")) : items[0].dtype();
  Tensor& out = ctx.Alloc("Out", dtype, shape);
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  for (const Tensor& item : items) {
    LookForInterrupt();
    if (item.numel() > 0) CopyBytes(ctx, item.raw(), to, item.bytes());
    to += item.bytes();
  }
  Tensor& counts = ctx.Alloc("lengths", DType::kI64, Shape{std::ssize(lengths)});
  std::copy(lengths.begin(), lengths.end(), counts.mutable_data<int64_t>());
  return Status::Ok();
}

void Define(OpDef& op, std::string_view doc) {
  op.Doc(doc).Input("list", kAnyKind | kArrayOnly).Input("element_shape", kOptional).Output("Out");
  op.Attr("dtype", 5);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_list_get_item) {
  Define(op, "a copy of the item of list at index; zeros where none was set");
  op.Input("index").InferShape(ItemShape).AnyKernel(GetItem);
}
HEDDLE_OP(tf_list_stack) {
  Define(op, "the items of list, which are num_elements, on a new first axis");
  op.Input("num_elements", kOptional).InferShape(StackShape).AnyKernel(Stack);
}
HEDDLE_OP(tf_list_gather) {
  Define(op, "the items of list at indices on a new first axis");
  op.Input("indices").InferShape(GatherShape).AnyKernel(Gather);
}
HEDDLE_OP(tf_list_concat) {
  Define(op, "the items of list joined along their first axis, and how many rows each had");
  op.Output("lengths").AnyKernel(Concat);
}

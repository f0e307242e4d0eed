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
  const TensorArray* list = KnownList(ctx);
  if (ctx.Bool("wrap") && at < 0 && list != nullptr) at += std::ssize(*list);
  HEDDLE_ASSIGN_OR_RETURN(const ItemMeta item, MetaOf(ctx, list, at));
  if (item.dtype == DType::kUnknown) return ctx.Defer();
  ctx.SetOut("Out", item.shape, item.dtype);
  return Status::Ok();
}

Status GetItem(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* list, ListIn(ctx, "list"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, ScalarIn(ctx, "index"));
  const int64_t from = ctx.Bool("wrap") && at < 0 ? std::ssize(*list) : 0;
  return PutItem(ctx, *list, at + from, ctx.Out("Out"));
}

// The shape that a list of no items is joined to, with a length of 0 along an axis (of the items'
// own, or of a new one).
Shape NoItems(const Shape& named, int64_t axis, bool fresh) {
  Shape shape;
  if (named.known_rank())
    for (int64_t d : named)
      if (shape.rank() < Shape::kMaxRank - (fresh ? 1 : 0))
        shape.push_back(std::max<int64_t>(d, 0));
  const int64_t rank = shape.rank() + (fresh ? 1 : 0);
  const auto at = static_cast<int>(
      std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, std::max<int64_t>(rank - 1, 0)));
  if (fresh || rank == 0)
    shape.insert(at, 0);
  else
    shape[at] = 0;
  return shape;
}

// Where items of this rank get their new axis.
Result<int> NewAxis(const OpContext& ctx, int rank) {
  if (rank == Shape::kMaxRank) return InvalidArgument("items of too many dimensions");
  return NormalAxis(ctx.Int("axis"), rank + 1);
}

// That of so many items like the one at `at` on a new axis.
Status StackedShape(ShapeContext& ctx, int64_t count, int64_t at) {
  if (count == 0) {
    const Tensor* given = ctx.InValue("element_shape");
    if (given == nullptr && ctx.InVar("element_shape") != nullptr) return ctx.Defer();
    HEDDLE_ASSIGN_OR_RETURN(const Shape named, NamedShape(given));
    ctx.SetOut("Out", NoItems(named, ctx.Int("axis"), true), DTypeFromProto(ctx.Int("dtype")));
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const ItemMeta item, MetaOf(ctx, KnownList(ctx), at));
  if (item.dtype == DType::kUnknown) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NewAxis(ctx, item.shape.rank()));
  Shape shape = item.shape;
  shape.insert(axis, count);
  ctx.SetOut("Out", shape, item.dtype);
  return Status::Ok();
}

// Items on a new axis, in an output that has its shape.
template <typename PlaceOf>
Status PutItems(KernelContext& ctx, const TensorArray& list, int64_t count, PlaceOf place_of) {
  Tensor& out = ctx.Out("Out");
  if (count == 0) return Status::Ok();
  if (list.empty()) return OutOfRange("item ", place_of(0), " of a list of 0 items");
  Shape shape = out.shape();
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), shape.rank()));
  shape.erase(axis);
  const int64_t rows = shape.Product(0, axis);
  const auto row = static_cast<int64_t>(BytesFor(out.dtype(), shape)) / std::max<int64_t>(rows, 1);
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  for (int64_t i = 0; i < count; ++i, to += row)
    HEDDLE_RETURN_IF_ERROR(
        PutItem(ctx, list, place_of(i), out.dtype(), shape, to, rows, row * count));
  return Status::Ok();
}

// The same of no item, or of one, where no shape function has told how many there are.
Status StackFew(KernelContext& ctx, const TensorArray& list) {
  if (list.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const Shape named, ElementShapeIn(ctx));
    ctx.Alloc("Out", DTypeFromProto(ctx.Int("dtype")), NoItems(named, ctx.Int("axis"), true));
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const Tensor item, ItemOrZeros(ctx, list, 0));
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NewAxis(ctx, item.rank()));
  Shape shape = item.shape();
  shape.insert(axis, 1);
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
  const bool reverse = ctx.Bool("reverse");
  return PutItems(ctx, *list, count, [=](int64_t i) { return reverse ? count - 1 - i : i; });
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

// Items joined along an axis of theirs, and how long each was there.
Status Concat(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* list, ListIn(ctx, "list"));
  Ints lengths;
  TensorArray items;
  HEDDLE_ASSIGN_OR_RETURN(const Shape named, ElementShapeIn(ctx));
  Shape shape = NoItems(named, ctx.Int("axis"), false);
  DType dtype = DTypeFromProto(ctx.Int("dtype"));
  int axis = 0;
  for (const int64_t i : Watched(std::ssize(*list))) {
    HEDDLE_ASSIGN_OR_RETURN(Tensor item, ItemOrZeros(ctx, *list, i));
    if (item.rank() == 0) return InvalidArgument("item ", i, " is a scalar, which has no rows");
    if (items.empty()) {
      dtype = item.dtype(), shape = item.shape();
      HEDDLE_ASSIGN_OR_RETURN(axis, NormalAxis(ctx.Int("axis"), shape.rank()));
      shape[axis] = 0;
    }
    Shape rest = item.shape(), wanted = shape;
    if (rest.rank() == wanted.rank()) rest[axis] = wanted[axis] = 0;
    if (rest != wanted || item.dtype() != dtype)
      return InvalidArgument("item ", i, " (", item.shape().ToString(),
                             ") cannot be joined to item 0 (", items[0].shape().ToString(),
                             ") along axis ", axis);
    lengths.push_back(item.dim(axis));
    shape[axis] += item.dim(axis);
    items.push_back(std::move(item));
  }
  Tensor& out = ctx.Alloc("Out", dtype, shape);
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  const int64_t rows = shape.Product(0, axis);
  const int64_t row = out.numel() == 0 ? 0 : static_cast<int64_t>(out.bytes()) / rows;
  for (const Tensor& item : items) {
    LookForInterrupt();
    if (item.numel() == 0) continue;
    const int64_t bytes = static_cast<int64_t>(item.bytes()) / rows;
    CopyRows(ctx, item.raw(), bytes, to, row, rows, bytes);
    to += bytes;
  }
  if (ctx.OutOpt("lengths") == nullptr) return Status::Ok();
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

HEDDLE_OP(list_item) {
  Define(op,
         "a copy of the item of list at index, which with wrap counts from the end where negative; "
         "zeros where none was set");
  op.Input("index").Attr("wrap", false).InferShape(ItemShape).AnyKernel(GetItem);
}
HEDDLE_OP(list_stack) {
  Define(op, "the items of list, which are num_elements, on a new axis");
  op.Input("num_elements", kOptional).Attr("axis", 0).Attr("reverse", false);
  op.InferShape(StackShape).AnyKernel(Stack);
}
HEDDLE_OP(list_gather) {
  Define(op, "the items of list at indices on a new axis");
  op.Input("indices").Attr("axis", 0).InferShape(GatherShape).AnyKernel(Gather);
}
HEDDLE_OP(list_concat) {
  Define(op, "the items of list joined along an axis, and how long each was there");
  op.Output("lengths", kOptional).Attr("axis", 0).AnyKernel(Concat);
}

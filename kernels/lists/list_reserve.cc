#include "core/operands/slot_kinds.h"
#include "kernels/lists/list_items.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Result<size_t> LengthIn(const KernelContext& ctx, Key key) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t n, ScalarIn(ctx, key));
  if (n < 0 || n > kMostListItems)
    return InvalidArgument("a list of ", n, " items; expected 0 to ", kMostListItems);
  return static_cast<size_t>(n);
}

// If no whole shape is named, nothing is known of items until some are set.
Status ReserveShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape named, NamedShape(ctx.InValue("element_shape")));
  if (IsWhole(named)) ctx.SetOut("Out", named, DTypeFromProto(ctx.Int("dtype")));
  return Status::Ok();
}

Status SameItems(ShapeContext& ctx) {
  SetItemsAlike(ctx);
  return Status::Ok();
}

Status Reserve(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const size_t n, LengthIn(ctx, "num_elements"));
  Tensor unset;
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ElementShapeIn(ctx));
  if (IsWhole(shape)) unset.SetMeta(DTypeFromProto(ctx.Int("dtype")), shape);
  ctx.OutVar("Out")->mutable_array().assign(n, unset);
  return Status::Ok();
}

Status Resize(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const size_t n, LengthIn(ctx, "size"));
  HEDDLE_ASSIGN_OR_RETURN(TensorArray* const out, ListOut(ctx));
  out->resize(n);
  return Status::Ok();
}

Status Like(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* list, ListIn(ctx, "list"));
  TensorArray made(list->size());
  for (size_t i = 0; i < made.size(); ++i)
    if ((*list)[i].dtype() != DType::kUnknown && IsWhole((*list)[i].shape()))
      made[i].SetMeta((*list)[i].dtype(), (*list)[i].shape());
  ctx.OutVar("Out")->mutable_array() = std::move(made);
  return Status::Ok();
}

Status Of(KernelContext& ctx) {
  TensorArray made(static_cast<size_t>(ctx.InCount("items")));
  for (size_t i = 0; i < made.size(); ++i)
    CopyTensor(ctx, ctx.In("items", static_cast<int>(i)), &made[i]);
  ctx.OutVar("Out")->mutable_array() = std::move(made);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(list_of) {
  op.Doc("a list of the tensors, which may be none").Input("items", kList | kOptional);
  op.Output("Out", kArrayOnly).AnyKernel(Of);
}

HEDDLE_OP(list_reserve) {
  op.Doc("a list of num_elements items that are not set; those of a known shape read as zeros")
      .Input("num_elements")
      .Input("element_shape", kOptional)
      .Output("Out", kAnyKind | kArrayOnly)
      .Attr("dtype", 5)
      .InferShape(ReserveShape)
      .AnyKernel(Reserve);
}

HEDDLE_OP(list_resize) {
  op.Doc(
        "list with as many items as size says, new ones not set; without list, Out changes in "
        "place")
      .Input("list", kAnyKind | kArrayOnly | kOptional)
      .Input("size")
      .Output("Out", kAnyKind | kArrayOnly)
      .InferShape(SameItems)
      .AnyKernel(Resize);
}

HEDDLE_OP(list_like) {
  op.Doc("a list of as many items as list has, not set and of the same shapes")
      .Input("list", kAnyKind | kArrayOnly)
      .Output("Out", kAnyKind | kArrayOnly)
      .InferShape(SameItems)
      .AnyKernel(Like);
}

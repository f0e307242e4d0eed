#include <complex>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/lists/list_items.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// The list's items are what the new one is, or differ.
Status NewItemShape(ShapeContext& ctx) {
  const Shape& shape = ctx.InShape("item");
  const Tensor* item = ctx.InCount("list") > 0 ? PlannedItem(KnownList(ctx)) : nullptr;
  if (item != nullptr && (item->shape() != shape || item->dtype() != ctx.InDType("item")))
    return ctx.Defer();
  ctx.SetOut("Out", shape, ctx.InDType("item"));
  return Status::Ok();
}

// The list's other items stay what they are; the one that is taken out may be an output.
Status ErasedShape(ShapeContext& ctx) {
  SetItemsAlike(ctx);
  if (!ctx.HasOut("item")) return Status::Ok();
  const TensorArray* list = KnownList(ctx);
  int64_t at = -1;
  if (ctx.InVar("position") != nullptr) {
    const Tensor* position = ctx.InValue("position");
    if (position == nullptr) return ctx.Defer();
    HEDDLE_ASSIGN_OR_RETURN(at, ScalarOf(*position, "position"));
  }
  if (at < 0 && list != nullptr) at += std::ssize(*list);
  HEDDLE_ASSIGN_OR_RETURN(const ItemMeta item, MetaOf(ctx, list, at));
  if (item.dtype == DType::kUnknown) return ctx.Defer();
  ctx.SetOut("item", item.shape, item.dtype);
  return Status::Ok();
}

Tensor CopyOf(const KernelContext& ctx, const Tensor& from) {
  Tensor made;
  CopyTensor(ctx, from, &made);
  return made;
}

// Items are shared by lists, so that a sum is a new one.
Result<Tensor> Sum(const KernelContext& ctx, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape())
    return InvalidArgument("'item' is ", Name(b.dtype()), " ", b.shape().ToString(),
                           "; it is added to one of ", Name(a.dtype()), " ", a.shape().ToString());
  Tensor sum = ctx.Scratch(a.dtype(), a.shape());
  bool known = false;
  VisitDType<float16, bfloat16, float, double, int32_t, int64_t>(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x = a.data<T>(), *y = b.data<T>();
    T* to = sum.mutable_data<T>();
    for (const auto part : Stretches(a.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) to[i] = AddFn::Apply(x[i], y[i]);
    known = true;
  });
  if (!known) return Unimplemented("a sum of ", Name(a.dtype()));
  return sum;
}

Status SetItem(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, ScalarIn(ctx, "index"));
  HEDDLE_ASSIGN_OR_RETURN(TensorArray* const out, ListOut(ctx));
  const bool grows = ctx.Bool("resize") && at >= 0 && at < kMostListItems;
  if (at < 0 || (at >= std::ssize(*out) && !grows))
    return OutOfRange("item ", at, " of a list of ", out->size(), " items cannot be set");
  if (at >= std::ssize(*out)) out->resize(static_cast<size_t>(at) + 1);
  Tensor& item = (*out)[static_cast<size_t>(at)];
  if (ctx.Bool("add") && item.initialized()) {
    HEDDLE_ASSIGN_OR_RETURN(item, Sum(ctx, item, ctx.In("item")));
  } else {
    item = CopyOf(ctx, ctx.In("item"));
  }
  return Status::Ok();
}

// The place that slot "position" names, counted from the end where it is negative; where it is left
// out the end: the place behind all items, or the last one.
Result<int64_t> PlaceIn(const KernelContext& ctx, const TensorArray& list, bool behind) {
  const int64_t n = std::ssize(list), end = behind ? n : n - 1;
  if (ctx.InOpt("position") == nullptr) {
    if (end < 0) return OutOfRange("an empty list has no last item");
    return end;
  }
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, ScalarIn(ctx, "position"));
  if (at < -n || at > end)
    return OutOfRange("'position' is ", at, "; a list of ", n, " items takes ", -n, " to ", end);
  return at < 0 ? at + n : at;
}

Status Insert(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(TensorArray* const out, ListOut(ctx));
  if (std::ssize(*out) >= kMostListItems)
    return OutOfRange("a list of more than ", kMostListItems, " items");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, PlaceIn(ctx, *out, true));
  out->insert(out->begin() + at, CopyOf(ctx, ctx.In("item")));
  return Status::Ok();
}

Status Erase(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(TensorArray* const out, ListOut(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t at, PlaceIn(ctx, *out, false));
  if (Tensor* item = ctx.OutOpt("item")) HEDDLE_RETURN_IF_ERROR(PutItem(ctx, *out, at, *item));
  out->erase(out->begin() + at);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(list_set_item) {
  op.Doc(
      "list with item at index; without list, Out changes in place. `resize`: places behind the "
      "end are made; `add`: to what stands there");
  op.Input("list", kAnyKind | kArrayOnly | kOptional)
      .Input("index")
      .Input("item")
      .Output("Out", kAnyKind | kArrayOnly);
  op.Attr("resize", false).Attr("add", false).InferShape(NewItemShape).AnyKernel(SetItem);
}

HEDDLE_OP(list_insert) {
  op.Doc(
        "list with item before position, which counts from the end where negative, or at its end; "
        "without list, Out changes in place")
      .Input("list", kAnyKind | kArrayOnly | kOptional)
      .Input("item")
      .Input("position", kOptional)
      .Output("Out", kAnyKind | kArrayOnly);
  op.InferShape(NewItemShape).AnyKernel(Insert);
}

HEDDLE_OP(list_erase) {
  op.Doc(
      "list without the item at position, or without its last one, and that item; without list, "
      "Out changes in place");
  op.Input("list", kAnyKind | kArrayOnly | kOptional).Input("position", kOptional);
  op.Input("element_shape", kOptional).Output("Out", kAnyKind | kArrayOnly);
  op.Output("item", kOptional).Attr("dtype", 5).InferShape(ErasedShape).AnyKernel(Erase);
}

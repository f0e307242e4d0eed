// Operands of operators on lists: tensor arrays whose items may be unset, with or without a shape.
#pragma once

#include <algorithm>
#include <memory_resource>
#include <vector>

#include "core/error.h"
#include "core/memory/bytes.h"
#include "core/shapes.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/index_args.h"
#include "kernels/base/shape_arg.h"
#include "kernels/base/short_list.h"
#include "kernels/index/index_value.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {

constexpr int64_t kMostListItems = int64_t{1} << 24;  // a larger number is a mistake, not a wish

inline Result<const TensorArray*> ListIn(const KernelContext& ctx, Key key) {
  static const TensorArray empty;
  const Value* v = ctx.InVar(key);
  if (v == nullptr || !v->initialized()) return &empty;
  if (v->is_array()) return &v->array();
  return InvalidArgument("'", key.name, "' must be a list of tensors");
}

// The output begins as the list of slot "list"; where that is left out, the output is the list, and
// changes in place.
inline Result<TensorArray*> ListOut(const KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(ListIn(ctx, "list").status());
  Value* out = ctx.OutVar("Out");
  if (ctx.InCount("list") > 0) {
    const Value* in = ctx.InVar("list");
    if (in != nullptr && in->is_array())
      *out = *in;
    else
      out->Clear();
  }
  return &out->mutable_array();
}

// The dimensions that an element_shape names: a vector, -1 unknown; a scalar: nothing is known.
inline Result<Shape> NamedShape(const Tensor* t) {
  if (t == nullptr || t->rank() != 1) return Shape::Unknown();
  if (t->numel() > Shape::kMaxRank)
    return InvalidArgument("element_shape names ", t->numel(), " dimensions; heddle has ",
                           int{Shape::kMaxRank}, " at most");
  Shape shape;
  ShortInts known;  // a dimension that is not known may be any
  for (int64_t i = 0; i < t->numel(); ++i) {
    const int64_t d = IntAt(*t, i);
    if (d < -1) return InvalidArgument("element_shape holds ", d, "; expected -1 or a size");
    shape.push_back(d);
    known.push_back(std::max<int64_t>(d, 1));
  }
  HEDDLE_RETURN_IF_ERROR(
      CheckedShape(std::span<const int64_t>(known.data(), known.size()), "element_shape").status());
  return shape;
}
inline Result<Shape> ElementShapeIn(const KernelContext& ctx) {
  return NamedShape(ctx.InOpt("element_shape"));
}

// The elements of an operand of integers.
inline std::pmr::vector<int64_t> IntsIn(const Tensor& t, CallHeap* heap) {
  std::pmr::vector<int64_t> ints(static_cast<size_t>(t.numel()), heap);
  for (size_t i = 0; i < ints.size(); ++i) ints[i] = IntAt(t, static_cast<int64_t>(i));
  return ints;
}

inline bool IsWhole(const Shape& shape) { return shape.known_rank() && shape.is_static(); }

// The shape of an item that was never set.
inline Result<Shape> UnsetShape(const KernelContext& ctx, const TensorArray& list,
                                const Tensor& item) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape named, ElementShapeIn(ctx));
  if (IsWhole(named)) return named;
  if (item.dtype() != DType::kUnknown && IsWhole(item.shape())) return item.shape();
  for (const Tensor& other : list)
    if (other.initialized()) return other.shape();
  return InvalidArgument("an item was never set, and nothing says what shape it has");
}

// An item, or zeros in its place.
inline Result<Tensor> ItemOrZeros(const KernelContext& ctx, const TensorArray& list, int64_t at) {
  if (at < 0 || at >= std::ssize(list))
    return OutOfRange("item ", at, " of a list of ", list.size(), " items");
  const Tensor& item = list[static_cast<size_t>(at)];
  if (item.initialized()) return item;
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, UnsetShape(ctx, list, item));
  DType dtype = item.dtype();
  if (dtype == DType::kUnknown) dtype = DTypeFromProto(ctx.Int("dtype"));
  Tensor zeros = ctx.Scratch(dtype, shape);
  ZeroBytes(ctx, zeros.mutable_raw(), zeros.bytes());
  return zeros;
}

// --- shape functions

// The list that an operator reads: slot "list", or the output where that is left out. nullptr: the
// plan does not know one.
inline const TensorArray* KnownList(const ShapeContext& ctx) {
  const Value* v = ctx.InCount("list") > 0 ? ctx.InVar("list") : ctx.OutVar("Out");
  return v != nullptr && v->is_array() && v->initialized() ? &v->array() : nullptr;
}

// The item that stands for all of a list before a run, which has no contents; nullptr: none does.
// (A list of one item that was never set looks alike in a run, and is told the same of.)
inline const Tensor* PlannedItem(const TensorArray* list) {
  const bool planned = list != nullptr && list->size() == 1 && !(*list)[0].initialized() &&
                       (*list)[0].dtype() != DType::kUnknown && IsWhole((*list)[0].shape());
  return planned ? &(*list)[0] : nullptr;
}

// Tells that the output's items are those of the list that it begins as.
inline void SetItemsAlike(ShapeContext& ctx) {
  if (ctx.InCount("list") == 0) return;
  if (const Tensor* item = PlannedItem(KnownList(ctx)))
    ctx.SetOut("Out", item->shape(), item->dtype());
}

struct ItemMeta {
  DType dtype = DType::kUnknown;  // kUnknown: nothing is known
  Shape shape;
};

// The dtype and shape of the item of a list at `at`, as far as they are known. An item that was
// never set has the shape that is named, else that of other items. In a run that is enough, but for
// places behind the end.
inline Result<ItemMeta> MetaOf(const ShapeContext& ctx, const TensorArray* list, int64_t at) {
  if (const Tensor* item = PlannedItem(list)) return ItemMeta{item->dtype(), item->shape()};
  const int64_t count = list != nullptr ? std::ssize(*list) : 0;
  if (at >= 0 && at < count && (*list)[static_cast<size_t>(at)].initialized()) {
    const Tensor& item = (*list)[static_cast<size_t>(at)];
    return ItemMeta{item.dtype(), item.shape()};
  }
  HEDDLE_ASSIGN_OR_RETURN(const Shape named, NamedShape(ctx.InValue("element_shape")));
  if (IsWhole(named)) return ItemMeta{DTypeFromProto(ctx.Int("dtype")), named};
  if (at >= 0 && at < count && (*list)[static_cast<size_t>(at)].dtype() != DType::kUnknown) {
    const Tensor& item = (*list)[static_cast<size_t>(at)];
    return ItemMeta{item.dtype(), item.shape()};
  }
  for (int64_t i = 0; i < count; ++i)
    if ((*list)[static_cast<size_t>(i)].initialized())
      return ItemMeta{(*list)[static_cast<size_t>(i)].dtype(),
                      (*list)[static_cast<size_t>(i)].shape()};
  // Lists that a plan knows have been seen to; the kernel tells of places that a list has not.
  if (at >= 0 && at < count)
    return InvalidArgument("item ", at, " was never set, and nothing says what shape it has");
  return ItemMeta{};
}

// --- items as tensors

// Copies an item to memory of this dtype and shape, in rows that begin `step` bytes apart; zeros
// where none was set.
inline Status PutItem(const KernelContext& ctx, const TensorArray& list, int64_t at, DType dtype,
                      const Shape& shape, void* to, int64_t rows = 1, int64_t step = 0) {
  if (at < 0 || at >= std::ssize(list))
    return OutOfRange("item ", at, " of a list of ", list.size(), " items");
  const Tensor& item = list[static_cast<size_t>(at)];
  if (item.initialized() && (item.dtype() != dtype || item.shape() != shape))
    return InvalidArgument("item ", at, " is ", Name(item.dtype()), " ", item.shape().ToString(),
                           "; expected ", Name(dtype), " ", shape.ToString());
  const auto bytes = static_cast<int64_t>(BytesFor(dtype, shape)) / std::max<int64_t>(rows, 1);
  if (item.initialized() && rows == 1) {
    CopyBytes(ctx, item.raw(), to, item.bytes());
  } else if (item.initialized()) {
    CopyRows(ctx, item.raw(), bytes, to, step, rows, bytes);
  } else {
    for (int64_t row = 0; row < rows; ++row)
      ZeroBytes(ctx, static_cast<std::byte*>(to) + row * step, static_cast<size_t>(bytes));
  }
  return Status::Ok();
}

// The same for an output whose shape function has told what item it is.
inline Status PutItem(const KernelContext& ctx, const TensorArray& list, int64_t at, Tensor& out) {
  return PutItem(ctx, list, at, out.dtype(), out.shape(), out.mutable_raw());
}

}  // namespace heddle

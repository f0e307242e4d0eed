// Operands of operators on lists: tensor arrays whose items may be unset, with or without a shape.
#pragma once

#include <algorithm>
#include <memory_resource>
#include <vector>

#include "core/error.h"
#include "core/shapes.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/shape_arg.h"
#include "kernels/index/index_args.h"
#include "kernels/index/index_value.h"

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

// The dimensions that slot "element_shape" names: a vector, -1 unknown; a scalar: nothing is known.
inline Result<Shape> ElementShapeIn(const KernelContext& ctx) {
  const Tensor* t = ctx.InOpt("element_shape");
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
      CheckedShape(std::span<const int64_t>(known.begin(), known.end()), "element_shape").status());
  return shape;
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

}  // namespace heddle

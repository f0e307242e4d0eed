// Items along one axis of a tensor, picked by a vector of indices or added to.
#pragma once

#include "core/shapes.h"
#include "kernels/index/nd_rows.h"

namespace heddle {

struct AxisItems {
  int64_t outer, inner;  // inner in elements
  IndexRange range;
};

inline AxisItems ItemsAlong(const Shape& x, int axis) {
  AxisItems v{x.Product(0, axis), x.Product(axis + 1, x.rank()), GoodRows(x[axis])};
  v.range.wrap = true;
  return v;
}

inline Result<int> ItemAxis(const OpContext& ctx, Key attr, const Shape& x) {
  if (x.rank() == 0) return InvalidArgument("'X' must have at least one dimension");
  return NormalAxis(ctx.Int(attr), x.rank());
}

// dst = items of x, or dst += grad's items at their places.
inline Status TakeItems(const KernelContext& ctx, const Tensor& x, int axis, const Tensor& index,
                        Tensor& out) {
  const AxisItems v = ItemsAlong(x.shape(), axis);
  HEDDLE_RETURN_IF_ERROR(CheckIndices(index, v.range, "Index"));
  if (out.numel() != v.outer * index.numel() * v.inner)
    return InvalidArgument("a shape of ", out.shape().ToString(), " does not fit ", index.numel(),
                           " items of ", x.shape().ToString());
  GatherRows(ctx, x.raw(), index, v.range, v.outer,
             v.inner * static_cast<int64_t>(SizeOf(x.dtype())), out.mutable_raw());
  return Status::Ok();
}

inline Status AddItems(const KernelContext& ctx, const Tensor& grad, int axis, const Tensor& index,
                       Tensor& out) {
  const AxisItems v = ItemsAlong(out.shape(), axis);
  HEDDLE_RETURN_IF_ERROR(CheckIndices(index, v.range, "Index"));
  if (grad.numel() != v.outer * index.numel() * v.inner || grad.dtype() != out.dtype())
    return InvalidArgument(Name(grad.dtype()), " ", grad.shape().ToString(), " does not fit ",
                           index.numel(), " items of ", Name(out.dtype()), " ",
                           out.shape().ToString());
  return ScatterAddRows(ctx, grad.raw(), index, v.range, v.outer, v.inner, out.dtype(),
                        out.mutable_raw());
}

}  // namespace heddle

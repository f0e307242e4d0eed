// Multi-dimensional and element-wise indices turned into the row numbers that gather.h works with.
#pragma once

#include "core/shapes.h"
#include "kernels/index/gather_rows.h"

namespace heddle {

// Row numbers of an index of shape [..., k] into the first k dimensions of `x`, behind `batch_dims`
// that both share: an int64 tensor of shape [...]. Indices are checked; with `wrap` negative ones
// count from the end.
Result<Tensor> RowsOfNdIndex(const KernelContext& ctx, const Tensor& index, const Shape& x,
                             const char* slot, bool wrap = true, int64_t batch_dims = 0);
// Whether the shapes fit; dimensions beside the last one of `index` may be unknown.
Status CheckNdIndex(const Shape& index, const Shape& x, int64_t batch_dims, const char* slot);

// Element numbers in `x` of take/put along an axis: entry [i…] of `index` (same rank) stands for
// x[i… with coordinate `axis` replaced by the entry]. An int64 tensor of index's shape.
Result<Tensor> ElementsAlongAxis(const KernelContext& ctx, const Tensor& index, const Shape& x,
                                 int axis, const char* slot);

// Zeroes rows of `inner` bytes.
void ZeroRows(void* dst, const Tensor& rows, int64_t inner);

// A range for row numbers that are known to be good.
inline IndexRange GoodRows(int64_t size) {
  IndexRange range;
  range.size = size;
  return range;
}

// Row numbers of the elements of X that the operands Index and Axis pick.
inline Result<Tensor> ElementsOfIndex(const KernelContext& ctx, const Shape& x) {
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("Axis"), x.rank()));
  return ElementsAlongAxis(ctx, ctx.In("Index"), x, axis, "Index");
}

}  // namespace heddle

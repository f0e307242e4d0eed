#include "kernels/index/nd_rows.h"

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status OutOfAxis(const char* slot, int64_t value, int64_t position, int64_t size) {
  return OutOfRange("'", slot, "' holds ", value, " at position ", position, "; expected ", -size,
                    " to ", size - 1);
}

template <typename I>
Status NdRows(const I* index, int64_t n, int k, const Shape& x, const char* slot, int64_t* rows) {
  for (const int64_t i : Watched(n)) {
    int64_t row = 0;
    for (int j = 0; j < k; ++j) {
      const int64_t at = index[i * k + j];
      if (at < -x[j] || at >= x[j]) return OutOfAxis(slot, at, i * k + j, x[j]);
      row = row * x[j] + (at < 0 ? at + x[j] : at);
    }
    rows[i] = row;
  }
  return Status::Ok();
}

template <typename I>
Status AlongAxis(const I* index, const Shape& shape, const Shape& x, int axis, const char* slot,
                 int64_t* out) {
  const auto strides = RowMajorStrides(x);
  const int rank = shape.rank();
  const int64_t n = shape.numel();
  std::array<int64_t, Shape::kMaxRank> at{};
  int64_t base = 0;  // of the coordinates other than `axis`
  for (const int64_t i : Watched(n)) {
    const int64_t v = index[i];
    if (v < -x[axis] || v >= x[axis]) return OutOfAxis(slot, v, i, x[axis]);
    out[i] = base + (v < 0 ? v + x[axis] : v) * strides[axis];
    for (int d = rank - 1; d >= 0; --d) {
      const int64_t step = d == axis ? 0 : strides[d];
      base += step;
      if (++at[d] < shape[d]) break;
      base -= step * shape[d];
      at[d] = 0;
    }
  }
  return Status::Ok();
}

}  // namespace

Result<Tensor> RowsOfNdIndex(const KernelContext& ctx, const Tensor& index, const Shape& x,
                             const char* slot) {
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(index.dtype(), slot));
  if (index.rank() == 0 || index.dim(-1) > x.rank())
    return InvalidArgument("'", slot, "' of shape ", index.shape().ToString(),
                           " must name at most the ", x.rank(), " axes of ", x.ToString());
  const int k = static_cast<int>(index.dim(-1));
  Shape shape = index.shape();
  shape.erase(shape.rank() - 1);
  Tensor rows = ctx.Scratch(DType::kI64, shape);
  int64_t* out = rows.mutable_data<int64_t>();
  const int64_t n = shape.numel();
  HEDDLE_RETURN_IF_ERROR(index.dtype() == DType::kI64
                             ? NdRows(index.data<int64_t>(), n, k, x, slot, out)
                             : NdRows(index.data<int32_t>(), n, k, x, slot, out));
  return rows;
}

Result<Tensor> ElementsAlongAxis(const KernelContext& ctx, const Tensor& index, const Shape& x,
                                 int axis, const char* slot) {
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(index.dtype(), slot));
  bool fits = index.rank() == x.rank();
  for (int d = 0; fits && d < x.rank(); ++d) fits = d == axis || index.dim(d) <= x[d];
  if (!fits)
    return InvalidArgument("'", slot, "' of shape ", index.shape().ToString(),
                           " does not fit the tensor's shape ", x.ToString(), " beside axis ",
                           axis);
  Tensor elements = ctx.Scratch(DType::kI64, index.shape());
  int64_t* out = elements.mutable_data<int64_t>();
  HEDDLE_RETURN_IF_ERROR(index.dtype() == DType::kI64
                             ? AlongAxis(index.data<int64_t>(), index.shape(), x, axis, slot, out)
                             : AlongAxis(index.data<int32_t>(), index.shape(), x, axis, slot, out));
  return elements;
}

void ZeroRows(void* dst, const Tensor& rows, int64_t inner) {
  for (const auto part : Stretches(rows.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      WatchedMemset(static_cast<std::byte*>(dst) + IntAt(rows, i) * inner, 0,
                    static_cast<size_t>(inner));
}

}  // namespace heddle

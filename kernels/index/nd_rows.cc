#include "kernels/index/nd_rows.h"

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status OutOfAxis(const char* slot, int64_t value, int64_t position, int64_t size, bool wrap) {
  return OutOfRange("'", slot, "' holds ", value, " at position ", position, "; expected ",
                    wrap ? -size : 0, " to ", size - 1);
}

// `x`: of a batch, of which `per_batch` tuples name rows.
template <typename I>
Status NdRows(const I* index, int64_t n, int64_t per_batch, int k, std::span<const int64_t> x,
              bool wrap, const char* slot, int64_t* rows) {
  for (const int64_t i : Watched(n)) {
    int64_t row = i / per_batch;
    for (int j = 0; j < k; ++j) {
      const int64_t at = index[i * k + j], size = x[static_cast<size_t>(j)];
      if (at < (wrap ? -size : 0) || at >= size) return OutOfAxis(slot, at, i * k + j, size, wrap);
      row = row * size + (at < 0 ? at + size : at);
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
    if (v < -x[axis] || v >= x[axis]) return OutOfAxis(slot, v, i, x[axis], true);
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
                             const char* slot, bool wrap, int64_t batch_dims) {
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(index.dtype(), slot));
  HEDDLE_RETURN_IF_ERROR(CheckNdIndex(index.shape(), x, batch_dims, slot));
  const int k = static_cast<int>(index.dim(-1)), batch = static_cast<int>(batch_dims);
  Shape shape = index.shape();
  shape.erase(shape.rank() - 1);
  Tensor rows = ctx.Scratch(DType::kI64, shape);
  int64_t* out = rows.mutable_data<int64_t>();
  const int64_t n = shape.numel();
  if (n == 0) return rows;
  const int64_t per_batch = shape.Product(batch, shape.rank());
  const auto sizes = x.dims().subspan(static_cast<size_t>(batch));
  HEDDLE_RETURN_IF_ERROR(
      index.dtype() == DType::kI64
          ? NdRows(index.data<int64_t>(), n, per_batch, k, sizes, wrap, slot, out)
          : NdRows(index.data<int32_t>(), n, per_batch, k, sizes, wrap, slot, out));
  return rows;
}

Status CheckNdIndex(const Shape& index, const Shape& x, int64_t batch_dims, const char* slot) {
  if (index.rank() == 0 || batch_dims < 0 || batch_dims >= index.rank() ||
      batch_dims + index.dim(-1) > x.rank())
    return InvalidArgument("'", slot, "' of shape ", index.ToString(), " must name at most the ",
                           x.rank() - batch_dims, " axes of ", x.ToString());
  for (int i = 0; i < batch_dims; ++i)
    if (x[i] >= 0 && index[i] >= 0 && x[i] != index[i])
      return InvalidArgument("'", slot, "' ", index.ToString(), " and the tensor ", x.ToString(),
                             " differ in batch dimension ", i);
  return Status::Ok();
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
  const bool scalar = x.rank() == 0;  // a line of one element
  const Shape shape = scalar ? Shape{1} : index.shape(), of = scalar ? Shape{1} : x;
  HEDDLE_RETURN_IF_ERROR(index.dtype() == DType::kI64
                             ? AlongAxis(index.data<int64_t>(), shape, of, axis, slot, out)
                             : AlongAxis(index.data<int32_t>(), shape, of, axis, slot, out));
  return elements;
}

void ZeroRows(void* dst, const Tensor& rows, int64_t inner) {
  for (const auto part : Stretches(rows.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      WatchedMemset(static_cast<std::byte*>(dst) + IntAt(rows, i) * inner, 0,
                    static_cast<size_t>(inner));
}

}  // namespace heddle

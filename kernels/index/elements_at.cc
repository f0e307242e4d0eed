#include "kernels/index/elements_at.h"

namespace heddle {

Status CheckElementIndices(const Shape& data, const Shape& indices, int axis) {
  bool fits = data.rank() == indices.rank();
  for (int i = 0; fits && i < data.rank(); ++i) fits = i == axis || indices[i] <= data[i];
  if (fits) return Status::Ok();
  return InvalidArgument("indices ", indices.ToString(), " do not fit data ", data.ToString(),
                         ", expected the same rank and no greater dimension but ", axis);
}

Result<TupleIndex> TuplesOf(const Shape& data, const Shape& indices, int64_t batch_dims) {
  const int rank = indices.rank();
  if (rank == 0) return InvalidArgument("indices is a scalar, expected at least one dimension");
  TupleIndex t;
  const int64_t k = indices[rank - 1];
  if (batch_dims < 0 || batch_dims >= rank || batch_dims + k > data.rank())
    return InvalidArgument("indices ", indices.ToString(), " with ", batch_dims,
                           " batch dimensions cannot index data ", data.ToString());
  t.batch = static_cast<int>(batch_dims);
  t.k = static_cast<int>(k);
  for (int i = 0; i < t.batch; ++i)
    if (data[i] != indices[i])
      return InvalidArgument("indices ", indices.ToString(), " and data ", data.ToString(),
                             " differ in batch dimension ", i);
  t.batches = data.Product(0, t.batch);
  t.tuples = indices.Product(t.batch, rank - 1);
  t.row = data.Product(t.batch + t.k, data.rank());
  t.batch_size = data.Product(t.batch, data.rank());
  return t;
}

}  // namespace heddle

#include "kernels/index/nd_indices.h"

namespace heddle {

Result<NdIndices> NdIndicesOf(const Shape& data, const Shape& indices) {
  if (indices.rank() < 1)
    return InvalidArgument("indices is a scalar, expected at least one dimension");
  NdIndices nd;
  nd.k = indices[indices.rank() - 1];
  if (nd.k > data.rank())
    return InvalidArgument("indices ", indices.ToString(), " holds tuples of ", nd.k,
                           ", but the tensor has shape ", data.ToString());
  for (int i = 0; i + 1 < indices.rank(); ++i) nd.leading.push_back(indices[i]);
  nd.tuples = nd.leading.numel();
  nd.row = data.Product(static_cast<int>(nd.k), data.rank());
  return nd;
}

}  // namespace heddle

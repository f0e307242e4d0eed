#include "kernels/strided/index_diagonal.h"

#include <algorithm>

#include "core/shapes.h"

namespace heddle {

Result<Diagonal> MakeDiagonal(const Shape& x, int64_t axis_a, int64_t axis_b, int64_t offset) {
  Diagonal d;
  HEDDLE_ASSIGN_OR_RETURN(d.a, NormalAxis(axis_a, x.rank()));
  HEDDLE_ASSIGN_OR_RETURN(d.b, NormalAxis(axis_b, x.rank()));
  if (d.a == d.b || x.rank() < 2)
    return InvalidArgument("a diagonal needs two different axes; there are ", axis_a, " and ",
                           axis_b, " of shape ", x.ToString());
  if (x[d.a] < 0 || x[d.b] < 0) {
    d.length = -1;
    return d;
  }
  const auto strides = RowMajorStrides(x);
  const int64_t down = std::max<int64_t>(0, -offset), right = std::max<int64_t>(0, offset);
  d.length = std::max<int64_t>(0, std::min(x[d.a] - down, x[d.b] - right));
  d.first = d.length == 0 ? 0 : down * strides[d.a] + right * strides[d.b];
  d.stride = strides[d.a] + strides[d.b];
  return d;
}

Shape DiagonalShape(const Shape& x, const Diagonal& d) {
  Shape out;
  for (int i = 0; i < x.rank(); ++i)
    if (i != d.a && i != d.b) out.push_back(x[i]);
  out.push_back(d.length);
  return out;
}

StridedCopy DiagonalCopy(const Shape& x, const Diagonal& d, size_t size, bool to_dense) {
  const auto strides = RowMajorStrides(x);
  std::array<CopyDim, Shape::kMaxRank> dims;
  const int rank = x.rank() - 1;
  int64_t dense = 1;
  int at = rank - 1;
  auto add = [&](int64_t n, int64_t stride) {
    dims[at--] = to_dense ? CopyDim{n, stride, dense} : CopyDim{n, dense, stride};
    dense *= n;
  };
  add(d.length, d.stride);
  for (int i = x.rank() - 1; i >= 0; --i)
    if (i != d.a && i != d.b) add(x[i], strides[i]);
  const std::span<const CopyDim> used(dims.data(), static_cast<size_t>(rank));
  return to_dense ? StridedCopy(size, used, d.first, 0) : StridedCopy(size, used, 0, d.first);
}

}  // namespace heddle

#include "kernels/products/matmul_shape.h"

namespace heddle {

Result<MatMulShape> MatMulShapeOf(const Shape& a, const Shape& b, bool trans_a, bool trans_b) {
  if (a.rank() == 0 || b.rank() == 0)
    return InvalidArgument("cannot multiply the scalars or matrices ", a.ToString(), " and ",
                           b.ToString());
  Shape x = a, y = b;
  if (a.rank() == 1) x.insert(0, 1);
  if (b.rank() == 1) y.push_back(1);
  const int64_t m = x.dim(trans_a && a.rank() > 1 ? -1 : -2);
  const int64_t k = x.dim(trans_a && a.rank() > 1 ? -2 : -1);
  const int64_t n = y.dim(trans_b && b.rank() > 1 ? -2 : -1);
  if (y.dim(trans_b && b.rank() > 1 ? -1 : -2) != k)
    return InvalidArgument("cannot multiply ", a.ToString(), " and ", b.ToString(),
                           ": inner dimensions differ");
  const Shape a_batch(x.dims().first(static_cast<size_t>(x.rank() - 2)));
  const Shape b_batch(y.dims().first(static_cast<size_t>(y.rank() - 2)));
  MatMulShape s;
  HEDDLE_ASSIGN_OR_RETURN(const Shape batch, BroadcastShape(a_batch, b_batch, -1));
  s.gemm =
      PlanBatchedGemm(a_batch, b_batch, batch,
                      GemmDims::Dense(m, n, k, trans_a && a.rank() > 1, trans_b && b.rank() > 1));
  s.out = batch;
  if (a.rank() > 1) s.out.push_back(m);
  if (b.rank() > 1) s.out.push_back(n);
  return s;
}

}  // namespace heddle

// A diagonal of two axes of a tensor as a strided view.
#pragma once

#include "kernels/strided/strided_copy.h"

namespace heddle {

// The elements x[…, i + max(0, -offset), …, i + max(0, offset), …] of axes a and b.
struct Diagonal {
  int a = 0, b = 0;
  int64_t length = 0, first = 0, stride = 0;  // number, element number of the first, step
};

// Axes may be negative; an error when they are equal or there are fewer than two.
Result<Diagonal> MakeDiagonal(const Shape& x, int64_t axis_a, int64_t axis_b, int64_t offset);
// x's shape without the two axes and with the diagonal at the end. Unknown dimensions give -1.
Shape DiagonalShape(const Shape& x, const Diagonal& d);
// dense[others…, i] = x[…] (to_dense) or the other way round.
StridedCopy DiagonalCopy(const Shape& x, const Diagonal& d, size_t size, bool to_dense);

// Puts `part` on a diagonal of `out`, which is zero elsewhere.
inline Status EmbedDiagonal(const KernelContext& ctx, const Tensor& part, const Diagonal& d,
                            Tensor& out) {
  const Shape expected = DiagonalShape(out.shape(), d);
  if (expected.numel() != part.numel() || part.dtype() != out.dtype())
    return InvalidArgument("a tensor of shape ", part.shape().ToString(),
                           " does not fit the diagonal, which has the shape ", expected.ToString());
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  DiagonalCopy(out.shape(), d, SizeOf(out.dtype()), false).Run(ctx, part.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace heddle

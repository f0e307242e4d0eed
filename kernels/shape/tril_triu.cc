#include <algorithm>

#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status Triangle(const KernelContext& ctx, const Tensor& x, Tensor& out) {
  if (x.rank() < 2)
    return InvalidArgument("'X' must have two dimensions or more, not the shape ",
                           x.shape().ToString());
  const int64_t rows = x.dim(-2), cols = x.dim(-1), diagonal = ctx.Int("diagonal");
  const bool lower = ctx.Bool("lower");
  const auto size = static_cast<int64_t>(SizeOf(x.dtype()));
  const auto* src = static_cast<const std::byte*>(x.raw());
  auto* dst = static_cast<std::byte*>(out.mutable_raw());
  const int64_t total = x.shape().Product(0, x.rank() - 1);
  const int64_t grain = std::max<int64_t>(1, (128 << 10) / std::max<int64_t>(1, cols * size));
  ctx.ParallelFor(cols == 0 ? 0 : total, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      // Columns [0, cut) are kept for the lower triangle, [cut, cols) for the upper one.
      const int64_t cut = std::clamp<int64_t>(r % rows + diagonal + (lower ? 1 : 0), 0, cols);
      const int64_t keep = lower ? 0 : cut, kept = lower ? cut : cols - cut;
      const int64_t zero = lower ? cut : 0;
      const std::byte* s = src + r * cols * size;
      std::byte* d = dst + r * cols * size;
      if (s != d) WatchedMemcpy(d + keep * size, s + keep * size, static_cast<size_t>(kept * size));
      WatchedMemset(d + zero * size, 0, static_cast<size_t>((cols - kept) * size));
    }
  });
  return Status::Ok();
}

Status Forward(KernelContext& ctx) { return Triangle(ctx, ctx.In("X"), ctx.Out("Out")); }
Status Backward(KernelContext& ctx) { return Triangle(ctx, ctx.In("Out@GRAD"), ctx.Out("X@GRAD")); }

}  // namespace
}  // namespace heddle

HEDDLE_OP(tril_triu) {
  op.Doc("X with everything above (lower) or below (upper) a diagonal set to zero.")
      .Input("X")
      .Output("Out")
      .Attr("diagonal", 0)
      .Attr("lower", false)
      .Inplace("X", "Out")
      .InferShape(SameShape)
      .AnyKernel(Forward);
}
HEDDLE_OP(tril_triu_grad) {
  op.Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("diagonal", 0)
      .Attr("lower", false)
      .Inplace("Out@GRAD", "X@GRAD")
      .InferShape(SameShape)
      .AnyKernel(Backward);
}

HEDDLE_EXAMPLES(tril_triu, R"(
example int32 1x2x1x5, lower
attr lower BOOLEAN true
in X int32 [1, 2, 1, 5] -2 -9 -8 -9 4 -1 0 -5 4 6
out Out int32 [1, 2, 1, 5] -2 0*4 -1 0*4

example complex64 4x4x1x1, diagonal -100, lower
attr diagonal INT -100
attr lower BOOLEAN true
in X complex64 [4, 4, 1, 1] 0.2+1.1j 1.2-2j -2-0.7j 0.9-0.6j 0.1+1.3j -0.9+0.8j 0.8+1.2j 0.1-1.7j
  1+1.9j 0.3+1.9j 1.1+0.9j -1.3-1.3j -0.8-0.2j 0.1-0.5j 0+1.9j 1.8-1.3j
out Out complex64 [4, 4, 1, 1] 0+0j*16

example float64 4x4x1x1, diagonal 100, lower
attr diagonal INT 100
attr lower BOOLEAN true
in X float64 [4, 4, 1, 1] 0.756 0.177 0.525 0.872 0.698 0.235 0.061 0.293 0.119 0.814 0.582 0.409
  0.93 0.64 0.467 0.351
out Out float64 [4, 4, 1, 1] 0.756 0.177 0.525 0.872 0.698 0.235 0.061 0.293 0.119 0.814 0.582 0.409
  0.93 0.64 0.467 0.351

example complex64 4x4x1x1, diagonal -1
attr diagonal INT -1
in X complex64 [4, 4, 1, 1] 0.8-0.7j 1.5-0.2j 0.9+1.3j -1.1-1.2j 1.5-0.1j -1.2+0.1j 1+1.3j -0.3-0.6j
  -1.4+1.3j 0.8-1.3j 0.6-1.4j 0.2+0.9j 0.6+1.1j -1.5+0.3j -0.9-1.7j 1.8-0.7j
out Out complex64 [4, 4, 1, 1] 0.8-0.7j 1.5-0.2j 0.9+1.3j -1.1-1.2j 1.5-0.1j -1.2+0.1j 1+1.3j
  -0.3-0.6j -1.4+1.3j 0.8-1.3j 0.6-1.4j 0.2+0.9j 0.6+1.1j -1.5+0.3j -0.9-1.7j 1.8-0.7j
)")

HEDDLE_EXAMPLES(tril_triu_grad, R"(
example float64 4x4, diagonal 2, lower
attr diagonal INT 2
attr lower BOOLEAN true
in Out@GRAD float64 [4, 4] -0.8 0.9 0.5 -0.3 0.4 0.6 0.3 -0.2 0.4 -0.5 -0.5 -1 -0.8 -0.4 0.3 -0.4
out X@GRAD float64 [4, 4] -0.8 0.9 0.5 0 0.4 0.6 0.3 -0.2 0.4 -0.5 -0.5 -1 -0.8 -0.4 0.3 -0.4

example complex64 4x4x1x1, diagonal 100
attr diagonal INT 100
in Out@GRAD complex64 [4, 4, 1, 1] 0.0625+0j*16
out X@GRAD complex64 [4, 4, 1, 1] 0+0j*16

example complex128 4x4x1x1, diagonal 1
attr diagonal INT 1
in Out@GRAD complex128 [4, 4, 1, 1] 0.0625+0j*16
out X@GRAD complex128 [4, 4, 1, 1] 0+0j*16

example float32 4x4, diagonal 2, lower
attr diagonal INT 2
attr lower BOOLEAN true
in Out@GRAD float32 [4, 4] -0.8 0.9 0.5 -0.3 0.4 0.6 0.3 -0.2 0.4 -0.5 -0.5 -1 -0.8 -0.4 0.3 -0.4
out X@GRAD float32 [4, 4] -0.8 0.9 0.5 0 0.4 0.6 0.3 -0.2 0.4 -0.5 -0.5 -1 -0.8 -0.4 0.3 -0.4
)")

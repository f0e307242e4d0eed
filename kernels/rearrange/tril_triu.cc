#include <algorithm>

#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status Triangle(const KernelContext& ctx, const Tensor& x, Tensor& out) {
  if (x.rank() < 2)
    return InvalidArgument("'X' must have two dimensions or more, not the shape ",
                           x.shape().ToString());
  const int64_t rows = x.dim(-2), cols = x.dim(-1);
  IntArg given;
  HEDDLE_RETURN_IF_ERROR(ReadInt(ctx, "Diagonal", "diagonal", &given));
  const int64_t diagonal = std::clamp(given.value, -rows - 1, cols + 1);
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
      .Input("Diagonal", kOptional)
      .Output("Out")
      .Attr("diagonal", 0)
      .Attr("lower", false)
      .Inplace("X", "Out")
      .InferShape(SameShape)
      .AnyKernel(Forward);
}
HEDDLE_OP(tril_triu_grad) {
  op.Input("Out@GRAD")
      .Input("Diagonal", kOptional)
      .Output("X@GRAD")
      .Attr("diagonal", 0)
      .Attr("lower", false)
      .Inplace("Out@GRAD", "X@GRAD")
      .InferShape(SameShape)
      .AnyKernel(Backward);
}

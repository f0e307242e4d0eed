// Blocks of space moved to the batch, and back.
#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

constexpr int64_t kMostMargin = int64_t{1} << 40;

// The layout of blocks: `m` spatial dimensions behind the batch.
struct Blocks {
  int m = 0;
  ShortInts size, lo, hi;
  int64_t per_image = 1;  // positions of a block
};

template <typename Context>
Result<Blocks> BlocksIn(const Context& ctx, const Shape& x, Key margins) {
  Blocks b;
  const Shape& s = ShapeIn(ctx, "block_shape");
  HEDDLE_ASSIGN_OR_RETURN(b.size, IntsIn(ctx, "block_shape"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts list, IntsIn(ctx, margins));
  b.m = static_cast<int>(b.size.size());
  if (s.rank() != 1 || b.m + 1 > x.rank() || list.size() != 2 * b.size.size())
    return InvalidArgument("block_shape and ", margins.name, " have ", b.size.size(), " and ",
                           list.size(), " elements for input ", x.ToString());
  for (size_t i = 0; i < b.size.size(); ++i) {
    b.lo.push_back(list[2 * i]);
    b.hi.push_back(list[2 * i + 1]);
    if (b.size[i] < 1 || b.size[i] > 1 << 20 || b.lo[i] < 0 || b.hi[i] < 0 ||
        b.lo[i] > kMostMargin || b.hi[i] > kMostMargin)
      return InvalidArgument("block_shape holds ", b.size[i], " and ", margins.name, " ", b.lo[i],
                             " and ", b.hi[i], " for dimension ", i);
    if (__builtin_mul_overflow(b.per_image, b.size[i], &b.per_image))
      return InvalidArgument("block_shape has more positions than can be counted");
  }
  return b;
}

template <bool kToBatch>
constexpr Key Margins() {
  return kToBatch ? Key("paddings") : Key("crops");
}

template <bool kToBatch>
Status BatchShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.known_rank()) return ctx.Defer();
  if (!Known(ctx, "block_shape") || !Known(ctx, Margins<kToBatch>()))
    return SameRank(ctx, "input", "output");
  HEDDLE_ASSIGN_OR_RETURN(const Blocks b, BlocksIn(ctx, x, Margins<kToBatch>()));
  Shape out = x;
  if (x[0] >= 0) {
    if (!kToBatch && x[0] % b.per_image != 0)
      return InvalidArgument("input has ", x[0], " images, not a multiple of ", b.per_image);
    if (!kToBatch)
      out[0] = x[0] / b.per_image;
    else if (__builtin_mul_overflow(x[0], b.per_image, &out[0]))
      return InvalidArgument("blocks make more images of ", x[0], " than can be counted");
  }
  for (int i = 0; i < b.m; ++i) {
    const auto k = static_cast<size_t>(i);
    if (x[i + 1] < 0) continue;
    if (kToBatch) {
      const int64_t d = x[i + 1] + b.lo[k] + b.hi[k];
      if (d % b.size[k] != 0)
        return InvalidArgument("dimension ", i + 1, " of input is ", d,
                               " with its paddings, not a multiple of ", b.size[k]);
      out[i + 1] = d / b.size[k];
    } else {
      if (__builtin_mul_overflow(x[i + 1], b.size[k], &out[i + 1]))
        return InvalidArgument("blocks make dimension ", i + 1, " too large");
      out[i + 1] -= b.lo[k] + b.hi[k];
      if (out[i + 1] < 0) return InvalidArgument("crops take more than dimension ", i + 1, " has");
    }
  }
  ctx.SetOut("output", out, ctx.InDType("input"));
  return Status::Ok();
}

// Rows of what lies behind the spatial dimensions.
template <bool kToBatch>
Status MoveBlocks(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const Blocks b, BlocksIn(ctx, x.shape(), Margins<kToBatch>()));
  const int64_t row =
      x.shape().Product(b.m + 1, x.rank()) * static_cast<int64_t>(SizeOf(x.dtype()));
  if (out.numel() == 0 || row == 0) return Status::Ok();
  if (kToBatch) ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  // `deep` has the larger batch.
  const Shape &deep = kToBatch ? out.shape() : x.shape(),
              &wide = kToBatch ? x.shape() : out.shape();
  Shape places;
  for (int i = 0; i <= b.m; ++i) places.push_back(deep[i]);
  const int64_t images = wide[0];
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  Walk<1> walk(places, {std::array<int64_t, Shape::kMaxRank>{}});
  ShortInts within(static_cast<size_t>(b.m));
  for (const auto part : Stretches(places.numel()))
    for (int64_t p = part.begin; p < part.end; ++p, walk.Next()) {
      int64_t offset = walk.index(0) / images, at = walk.index(0) % images;
      for (int i = b.m - 1; i >= 0; --i) {
        const auto k = static_cast<size_t>(i);
        within[k] = offset % b.size[k];
        offset /= b.size[k];
      }
      bool inside = true;
      for (int i = 0; i < b.m; ++i) {
        const auto k = static_cast<size_t>(i);
        const int64_t at_i = walk.index(i + 1) * b.size[k] + within[k] - b.lo[k];
        inside = inside && at_i >= 0 && at_i < wide[i + 1];
        at = at * wide[i + 1] + at_i;
      }
      if (inside) CopyRow(to + (kToBatch ? p : at) * row, from + (kToBatch ? at : p) * row, row);
    }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(space_to_batch_nd) {
  op.Doc("the positions of blocks as images of their own").Input("input");
  op.Input("block_shape", kShapeValue).Input("paddings", kShapeValue).Output("output");
  op.InferShape(BatchShape<true>).AnyKernel(MoveBlocks<true>);
}
HEDDLE_OP(batch_to_space_nd) {
  op.Doc("images put together as positions of blocks").Input("input");
  op.Input("block_shape", kShapeValue).Input("crops", kShapeValue).Output("output");
  op.InferShape(BatchShape<false>).AnyKernel(MoveBlocks<false>);
}

// Blocks of space moved to the batch or to channels, and back.
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

struct DepthBlocks {
  bool last = true;
  int64_t block = 1, n = 0, h = 0, w = 0, c = 0;  // of the tensor with more channels; c: of a pixel
};
Result<DepthBlocks> DepthBlocksOf(const OpContext& ctx, const Shape& x, bool to_depth) {
  const std::string& format = ctx.Str("data_format");
  DepthBlocks d;
  d.block = ctx.Int("block_size");
  if (x.rank() != 4 || (format != "NHWC" && format != "NCHW") || d.block < 1 || d.block > 1 << 15)
    return InvalidArgument("input has shape ", x.ToString(), ", data_format '", format,
                           "' and block_size ", d.block);
  d.last = format == "NHWC";
  d.n = x[0];
  d.h = x[d.last ? 1 : 2];
  d.w = x[d.last ? 2 : 3];
  d.c = x[d.last ? 3 : 1];
  const int64_t square = d.block * d.block;
  const auto divides = [](int64_t size, int64_t by) { return size < 0 || size % by == 0; };
  if (to_depth ? !divides(d.h, d.block) || !divides(d.w, d.block) : !divides(d.c, square))
    return InvalidArgument("input ", x.ToString(), " is no multiple of blocks of ", d.block);
  if (to_depth) {
    d.h = d.h < 0 ? -1 : d.h / d.block;
    d.w = d.w < 0 ? -1 : d.w / d.block;
  } else {
    d.c = d.c < 0 ? -1 : d.c / square;
  }
  return d;
}

template <bool kToDepth>
Status DepthShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const DepthBlocks d, DepthBlocksOf(ctx, x, kToDepth));
  const auto times = [](int64_t a, int64_t b) { return a < 0 ? -1 : a * b; };
  const int64_t h = kToDepth ? d.h : times(d.h, d.block), w = kToDepth ? d.w : times(d.w, d.block);
  const int64_t c = kToDepth ? times(d.c, d.block * d.block) : d.c;
  ctx.SetOut("output", d.last ? Shape{d.n, h, w, c} : Shape{d.n, c, h, w}, ctx.InDType("input"));
  return Status::Ok();
}

template <bool kToDepth>
Status MoveDepth(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const DepthBlocks d, DepthBlocksOf(ctx, x.shape(), kToDepth));
  if (out.numel() == 0) return Status::Ok();
  const int64_t b = d.block, deep_c = d.c * b * b, area = d.h * d.w;
  // Strides of n, h, block row, w, block column, c in the wide tensor and in the deep one.
  std::array<CopyDim, 6> dims;
  const int64_t wide_w = d.w * b;
  const std::array<int64_t, 6> sizes{d.n, d.h, b, d.w, b, d.c};
  const std::array<int64_t, 6> wide =
      d.last ? std::array<int64_t, 6>{area * b * b * d.c,
                                      b * wide_w * d.c,
                                      wide_w * d.c,
                                      b * d.c,
                                      d.c,
                                      1}
             : std::array<int64_t, 6>{area * b * b * d.c, b * wide_w, wide_w, b, 1, area * b * b};
  const std::array<int64_t, 6> deep =
      d.last ? std::array<int64_t, 6>{area * deep_c, d.w * deep_c, b * d.c, deep_c, d.c, 1}
             : std::array<int64_t, 6>{area * deep_c, d.w, b * d.c * area, 1, d.c * area, area};
  for (size_t i = 0; i < 6; ++i)
    dims[i] = {sizes[i], kToDepth ? wide[i] : deep[i], kToDepth ? deep[i] : wide[i]};
  StridedCopy(SizeOf(x.dtype()), dims).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_space_to_batch_nd) {
  op.Doc("the positions of blocks as images of their own").Input("input");
  op.Input("block_shape", kShapeValue).Input("paddings", kShapeValue).Output("output");
  op.InferShape(BatchShape<true>).AnyKernel(MoveBlocks<true>);
}
HEDDLE_OP(tf_batch_to_space_nd) {
  op.Doc("images put together as positions of blocks").Input("input");
  op.Input("block_shape", kShapeValue).Input("crops", kShapeValue).Output("output");
  op.InferShape(BatchShape<false>).AnyKernel(MoveBlocks<false>);
}
HEDDLE_OP(tf_space_to_depth) {
  op.Doc("the pixels of blocks as channels").Input("input").Output("output");
  op.Attr("block_size", 2).Attr("data_format", "NHWC");
  op.InferShape(DepthShape<true>).AnyKernel(MoveDepth<true>);
}
HEDDLE_OP(tf_depth_to_space) {
  op.Doc("channels as the pixels of blocks").Input("input").Output("output");
  op.Attr("block_size", 2).Attr("data_format", "NHWC");
  op.InferShape(DepthShape<false>).AnyKernel(MoveDepth<false>);
}

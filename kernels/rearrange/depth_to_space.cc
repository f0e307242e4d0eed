// Blocks of pixels that move between the channels and the plane.
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

struct DepthBlocks {
  bool last = true;          // channels are the last dimension
  bool blocks_first = true;  // the channels of one place in a block lie together
  int64_t block = 1, n = 0, h = 0, w = 0, c = 0;  // of the tensor with more channels; c: of a pixel
};
Result<DepthBlocks> DepthBlocksOf(const OpContext& ctx, const Shape& x, bool to_depth) {
  const std::string &format = ctx.Str("data_format"), &mode = ctx.Str("mode");
  DepthBlocks d;
  d.block = ctx.Int("block_size");
  if (x.rank() != 4 || (format != "NHWC" && format != "NCHW") || d.block < 1 ||
      d.block > int64_t{1} << 20 || (mode != "DCR" && mode != "CRD"))
    return InvalidArgument("input has shape ", x.ToString(), ", data_format '", format, "', mode '",
                           mode, "' and block_size ", d.block);
  d.blocks_first = mode == "DCR";
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
  // From one channel, row or column of a block to the next, in channels.
  const int64_t row = d.blocks_first ? b * d.c : b, column = d.blocks_first ? d.c : 1;
  const int64_t channel = d.blocks_first ? 1 : b * b;
  const std::array<int64_t, 6> deep =
      d.last ? std::array<int64_t, 6>{area * deep_c, d.w * deep_c, row, deep_c, column, channel}
             : std::array<int64_t, 6>{area * deep_c, d.w,           row * area, 1,
                                      column * area, channel * area};
  for (size_t i = 0; i < 6; ++i)
    dims[i] = {sizes[i], kToDepth ? wide[i] : deep[i], kToDepth ? deep[i] : wide[i]};
  StridedCopy(SizeOf(x.dtype()), dims).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(depth_to_space) {
  op.Doc("channels laid out as blocks of pixels; in mode DCR those of one place lie together");
  op.Input("input").Output("output").Attr("block_size", 2).Attr("data_format", "NHWC");
  op.Attr("mode", "DCR").InferShape(DepthShape<false>).AnyKernel(MoveDepth<false>);
}
HEDDLE_OP(space_to_depth) {
  op.Doc("blocks of pixels laid out as channels; in mode DCR those of one place lie together");
  op.Input("input").Output("output").Attr("block_size", 2).Attr("data_format", "NHWC");
  op.Attr("mode", "DCR").InferShape(DepthShape<true>).AnyKernel(MoveDepth<true>);
}

// Blocks of pixels that move between the channels and the plane.
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// True for mode "DCR", where the channels of a block lie apart; false for "CRD", where they lie
// together.
Result<bool> BlocksFirst(const OpContext& ctx) {
  const std::string& mode = ctx.Str("mode");
  if (mode == "DCR" || mode == "CRD") return mode == "DCR";
  return InvalidArgument("mode is '", mode, "', expected DCR or CRD");
}

Status OnnxBlockShape(ShapeContext& ctx, bool to_space) {
  const Shape& x = ctx.InShape("input");
  if (!x.is_static()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(CheckRank(x, 4, "input"));
  HEDDLE_RETURN_IF_ERROR(BlocksFirst(ctx).status());
  const int64_t b = ctx.Int("blocksize");
  if (b < 1 || b > 1 << 20) return InvalidArgument("blocksize is ", b, ", expected at least 1");
  if (to_space ? x[1] % (b * b) != 0 : x[2] % b != 0 || x[3] % b != 0)
    return InvalidArgument("input ", x.ToString(), " is not made of blocks of ", b, " by ", b);
  const Shape out = to_space ? Shape{x[0], x[1] / (b * b), x[2] * b, x[3] * b}
                             : Shape{x[0], x[1] * b * b, x[2] / b, x[3] / b};
  ctx.SetOut("output", out, ctx.InDType("input"));
  return Status::Ok();
}

Status RunOnnxBlocks(KernelContext& ctx, bool to_space) {
  const Tensor& x = ctx.In("input");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const bool blocks_first, BlocksFirst(ctx));
  const int64_t b = ctx.Int("blocksize");
  // Both directions pair the deep tensor's channels with the wide one's pixels.
  const Shape& deep = to_space ? x.shape() : out.shape();
  const int64_t n = deep[0], c = deep[1] / (b * b), h = deep[2], w = deep[3], plane = h * w;
  const int64_t block = blocks_first ? c * plane : plane,
                channel = blocks_first ? plane : b * b * plane;
  const CopyDim dims[] = {{n, deep.Product(1, 4), deep.Product(1, 4)},
                          {c, channel, b * b * plane},
                          {h, w, w * b * b},
                          {b, b * block, w * b},
                          {w, 1, b},
                          {b, block, 1}};
  std::array<CopyDim, 6> order;
  for (size_t i = 0; i < 6; ++i)
    order[i] = to_space ? dims[i] : CopyDim{dims[i].n, dims[i].dst, dims[i].src};
  if (x.numel() > 0) StridedCopy(SizeOf(x.dtype()), order).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_depth_to_space) {
  op.Doc("channels laid out as blocks of pixels").Input("input").Output("output");
  op.Attr("blocksize", 1).Attr("mode", "DCR");
  op.InferShape([](ShapeContext& ctx) { return OnnxBlockShape(ctx, true); });
  op.AnyKernel([](KernelContext& ctx) { return RunOnnxBlocks(ctx, true); });
}
HEDDLE_OP(onnx_space_to_depth) {
  op.Doc("blocks of pixels laid out as channels").Input("input").Output("output");
  op.Attr("blocksize", 1).Attr("mode", "DCR");
  op.InferShape([](ShapeContext& ctx) { return OnnxBlockShape(ctx, false); });
  op.AnyKernel([](KernelContext& ctx) { return RunOnnxBlocks(ctx, false); });
}

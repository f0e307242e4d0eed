#include "core/shapes.h"
#include "kernels/base/to_place.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// A share of the channels comes from the frame before, as many from the frame after, the others
// stay. `back` reverses the two, which is the gradient.
Status Shift(const KernelContext& ctx, const Tensor& x, bool back, Tensor& out) {
  const int64_t frames = ctx.Int("seg_num");
  const bool last = ctx.Str("data_format") == "NHWC";
  if (x.rank() != 4 || frames < 1 || x.dim(0) % frames != 0)
    return InvalidArgument("'X' of shape ", x.shape().ToString(),
                           " must have four dimensions, the first a multiple of seg_num (", frames,
                           ")");
  const int64_t clips = x.dim(0) / frames, channels = x.dim(last ? 3 : 1);
  const int64_t pixels = last ? x.dim(1) * x.dim(2) : x.dim(2) * x.dim(3);
  const int64_t frame = channels * pixels, clip = frames * frame;
  const auto ratio = static_cast<float>(ctx.Float("shift_ratio"));
  const auto first = ToPlace(static_cast<float>(channels) * ratio);
  const auto second = ToPlace(static_cast<float>(channels) * 2 * ratio);
  if (first < 0 || second < first || second > channels)
    return InvalidArgument("'shift_ratio' is ", ratio, "; expected 0 to 0.5");
  const int64_t channel_step = last ? 1 : pixels, pixel_step = last ? channels : 1;
  const size_t size = SizeOf(x.dtype());
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  auto copy = [&](int64_t begin, int64_t end, int64_t src_frame, int64_t dst_frame, int64_t n) {
    const CopyDim dims[] = {{clips, clip, clip},
                            {n, frame, frame},
                            {end - begin, channel_step, channel_step},
                            {pixels, pixel_step, pixel_step}};
    const CopyDim channels_inside[] = {dims[0], dims[1], dims[3], dims[2]};
    StridedCopy(size, last ? channels_inside : dims, src_frame * frame + begin * channel_step,
                dst_frame * frame + begin * channel_step)
        .Run(ctx, x.raw(), out.mutable_raw());
  };
  copy(0, first, back ? 1 : 0, back ? 0 : 1, frames - 1);
  copy(first, second, back ? 0 : 1, back ? 1 : 0, frames - 1);
  copy(second, channels, 0, 0, frames);
  return Status::Ok();
}

Status Forward(KernelContext& ctx) { return Shift(ctx, ctx.In("X"), false, ctx.Out("Out")); }
Status Backward(KernelContext& ctx) {
  return Shift(ctx, ctx.In("Out@GRAD"), true, ctx.Out("X@GRAD"));
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(temporal_shift) {
  op.Doc("A share of every frame's channels moved to the next frame, as many to the one before.")
      .Input("X")
      .Output("Out")
      .Attr("seg_num", 1)
      .Attr("shift_ratio", 0.25)
      .Attr("data_format", "NCHW")
      .InferShape(SameShape)
      .AnyKernel(Forward);
}
HEDDLE_OP(temporal_shift_grad) {
  op.Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("seg_num", 1)
      .Attr("shift_ratio", 0.25)
      .Attr("data_format", "NCHW")
      .InferShape(SameShape)
      .AnyKernel(Backward);
}

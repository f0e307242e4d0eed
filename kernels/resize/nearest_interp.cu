// Resizing to the nearest pixel.
#include "core/kernel_context.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/in_float.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/pixels.h"

namespace heddle::HEDDLE_GRID {
namespace {

struct NearestBody {
  Pixels g;
  int64_t in_h, in_w, out_h, out_w;
  const float* x;
  float* out;
  float ratio_h, ratio_w;
  bool corners;
  HEDDLE_BODY int64_t Source(int64_t k, float ratio, int64_t in) const {
    const float pos = ratio * static_cast<float>(k);
    const auto at =
        static_cast<int64_t>(corners ? static_cast<double>(pos) + 0.5 : static_cast<double>(pos));
    return at < in ? at : in - 1;
  }
  HEDDLE_BODY void operator()(int64_t i) const {
    const auto p = g.At(i, out_h, out_w);
    out[i] = x[g.Number(p, Source(p.y, ratio_h, in_h), Source(p.x, ratio_w, in_w), in_h, in_w)];
  }
};

// The attributes' scale for dimension d; none: -1. Sizes that tensors give are only for the host.
float ScaleOf(const OpContext& ctx, size_t d) {
  if (ctx.def().name() == "nearest_interp") return -1;  // its scale does not enter the ratio
  const Floats& scale = ctx.Attr<Floats>("scale");
  if (scale.empty()) return -1;
  return static_cast<float>(scale.size() == 1 ? scale[0] : scale.at(d));
}
float RatioOf(int64_t in, int64_t out, float scale, bool corners) {
  if (out <= 1) return 0;
  if (corners) return static_cast<float>(in - 1) / static_cast<float>(out - 1);
  return scale > 0 ? 1 / scale : static_cast<float>(in) / static_cast<float>(out);
}

Status Nearest(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  NearestBody body{};
  body.g.channels_last = ctx.Str("data_layout") == "NHWC";
  const int first = body.g.channels_last ? 1 : 2;
  body.g.batch = x.dim(0), body.g.channels = x.dim(body.g.channels_last ? 3 : 1);
  body.in_h = x.dim(first), body.in_w = x.dim(first + 1);
  body.out_h = out.dim(first), body.out_w = out.dim(first + 1);
  body.x = x.data<float>(), body.out = out.mutable_data<float>();
  body.corners = ctx.Bool("align_corners");
  body.ratio_h = RatioOf(body.in_h, body.out_h, ScaleOf(ctx, 0), body.corners);
  body.ratio_w = RatioOf(body.in_w, body.out_w, ScaleOf(ctx, 1), body.corners);
  return Each(queue, out.numel(), body);
}
bool CoversNearest(const CallView& call) {
  return call.InShape("X").rank() == 4 && !call.HasIn("OutSize") && !call.HasIn("Scale") &&
         call.InCount("SizeTensor") == 0;
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(nearest_interp) { kernel = {InFloat<Nearest>, CoversNearest, kReals}; }
HEDDLE_CUDA_KERNEL(nearest_interp_v2) { kernel = {InFloat<Nearest>, CoversNearest, kReals}; }

// anchor_generator: boxes of given sizes and ratios around each cell of a feature map.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/detection/box_slots.h"

namespace heddle {
namespace {

Status InferAnchors(ShapeContext& ctx) {
  const Shape& in = ctx.InShape("Input");
  if (!in.is_static()) return ctx.Defer();
  if (in.rank() != 4) return InvalidArgument("Input must be [N, C, H, W], not ", in.ToString());
  const size_t count =
      ctx.Attr<Floats>("anchor_sizes").size() * ctx.Attr<Floats>("aspect_ratios").size();
  const Shape out{in[2], in[3], static_cast<int64_t>(count), 4};
  ctx.SetOut("Anchors", out, ctx.InDType("Input"));
  ctx.SetOut("Variances", out, ctx.InDType("Input"));
  return Status::Ok();
}

template <typename T>
struct Anchors {
  static Status Run(KernelContext& ctx) {
    const Floats& stride = ctx.Attr<Floats>("stride");
    if (stride.size() != 2) return InvalidArgument("stride must have 2 values");
    const T step_x = static_cast<T>(stride[0]), step_y = static_cast<T>(stride[1]);
    const T offset = static_cast<T>(ctx.Float("offset"));
    Tensor& anchors = ctx.Out("Anchors");
    T* out = anchors.mutable_data<T>();
    for (const int64_t row : Watched(anchors.dim(0)))
      for (int64_t col = 0; col < anchors.dim(1); ++col) {
        const T x = static_cast<T>(col) * step_x + offset * (step_x - 1);
        const T y = static_cast<T>(row) * step_y + offset * (step_y - 1);
        for (double ratio : ctx.Attr<Floats>("aspect_ratios"))
          for (double size : ctx.Attr<Floats>("anchor_sizes")) {
            const T base_w = std::round(std::sqrt(step_x * step_y / static_cast<T>(ratio)));
            const T base_h = std::round(base_w * static_cast<T>(ratio));
            const T w = static_cast<T>(size) / step_x * base_w;
            const T h = static_cast<T>(size) / step_y * base_h;
            *out++ = static_cast<T>(x - 0.5 * (w - 1));
            *out++ = static_cast<T>(y - 0.5 * (h - 1));
            *out++ = static_cast<T>(x + 0.5 * (w - 1));
            *out++ = static_cast<T>(y + 0.5 * (h - 1));
          }
      }
    return FillVariances<T>(ctx, ctx.Out("Variances"));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(anchor_generator) {
  op.Doc("boxes of given sizes and ratios around each cell of a feature map");
  op.Input("Input", kNoBuffer).Output("Anchors").Output("Variances");
  op.Attr("anchor_sizes", Floats{}).Attr("aspect_ratios", Floats{}).Attr("variances", Floats{});
  op.Attr("stride", Floats{16, 16}).Attr("offset", 0.5);
  op.InferShape(InferAnchors).Kernels<Anchors, float, double>();
}

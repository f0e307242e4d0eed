// polygon_box_transform: corner offsets of each cell as absolute coordinates.
#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferPolygon(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("Input");
  if (x.known_rank() && (x.rank() != 4 || x[1] % 2 != 0))
    return InvalidArgument("Input must be [N, 2 C, H, W], not ", x.ToString());
  ctx.SetOut("Output", x, ctx.InDType("Input"));
  return Status::Ok();
}

// Offsets from cells of 4 pixels become coordinates; even channels are x, odd ones y.
template <typename T>
struct PolygonTransform {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Input");
    const int64_t w = x.dim(3), plane = x.dim(2) * w, channels = x.dim(1);
    T* out = ctx.Out("Output").template mutable_data<T>();
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t at = i % plane, cell = i / plane % channels % 2 == 0 ? at % w : at / w;
        out[i] = static_cast<T>(cell * 4) - x.data<T>()[i];
      }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(polygon_box_transform) {
  op.Doc("offsets of polygons' corners to coordinates").Input("Input").Output("Output");
  op.InferShape(InferPolygon).Kernels<PolygonTransform, float, double>();
}

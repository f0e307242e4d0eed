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

HEDDLE_EXAMPLES(polygon_box_transform, R"(
example float32 1x4x2x2
in Input float32 [1, 4, 2, 2] 0.385 0.222 0.818 0.601 0.439 0.927 0.331 0.656 0.547 0.764 0.168 0.71
  0.114 0.872 0.493 0.276
out Output float32 [1, 4, 2, 2] -0.385 3.7779999 -0.818 3.399 -0.439 -0.927 3.669 3.3439999 -0.547
  3.236 -0.168 3.29 -0.114 -0.872 3.507 3.724

example float64 1x4x2x2
in Input float64 [1, 4, 2, 2] 0.385 0.222 0.818 0.601 0.439 0.927 0.331 0.656 0.547 0.764 0.168 0.71
  0.114 0.872 0.493 0.276
out Output float64 [1, 4, 2, 2] -0.385 3.778 -0.818 3.399 -0.439 -0.927 3.669 3.344 -0.547
  3.2359999999999998 -0.168 3.29 -0.114 -0.872 3.507 3.724
)")

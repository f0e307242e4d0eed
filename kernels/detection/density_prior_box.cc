// density_prior_box: boxes on a finer grid within each cell of a feature map.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/detection/box_slots.h"
#include "kernels/elementwise/convert.h"

namespace heddle {
namespace {

// --- density_prior_box ---

int64_t DensityCount(const OpContext& ctx) {
  int64_t count = 0;
  for (int64_t d : ctx.IntList("densities"))
    count += d * d * static_cast<int64_t>(ctx.Attr<Floats>("fixed_ratios").size());
  return count;
}

Status InferDensity(ShapeContext& ctx) {
  const Shape &in = ctx.InShape("Input"), &image = ctx.InShape("Image");
  if (!in.is_static() || !image.is_static()) return ctx.Defer();
  if (in.rank() != 4 || image.rank() != 4)
    return InvalidArgument("Input and Image must be [N, C, H, W]");
  if (ctx.IntList("densities").size() != ctx.Attr<Floats>("fixed_sizes").size())
    return InvalidArgument("densities and fixed_sizes differ in length");
  for (int64_t d : ctx.IntList("densities"))
    if (d < 1 || d > 1024) return OutOfRange("a density is ", d);
  const int64_t count = DensityCount(ctx);
  const Shape out =
      ctx.Bool("flatten_to_2d") ? Shape{in[2] * in[3] * count, 4} : Shape{in[2], in[3], count, 4};
  ctx.SetOut("Boxes", out, ctx.InDType("Input"));
  ctx.SetOut("Variances", out, ctx.InDType("Input"));
  return Status::Ok();
}

template <typename T>
struct DensityBoxes {
  static Status Run(KernelContext& ctx) {
    const Shape &in = ctx.In("Input").shape(), &image = ctx.In("Image").shape();
    T step_x = static_cast<T>(ctx.Float("step_w")), step_y = static_cast<T>(ctx.Float("step_h"));
    if (step_x == 0 || step_y == 0) {
      step_x = static_cast<T>(image[3]) / static_cast<T>(in[3]);
      step_y = static_cast<T>(image[2]) / static_cast<T>(in[2]);
    }
    const T offset = static_cast<T>(ctx.Float("offset"));
    T* out = ctx.Out("Boxes").template mutable_data<T>();
    for (const int64_t row : Watched(in[2]))
      for (int64_t col = 0; col < in[3]; ++col)
        out = Cell(ctx, (static_cast<T>(col) + offset) * step_x,
                   (static_cast<T>(row) + offset) * step_y, ConvertTo<int>((step_x + step_y) * 0.5),
                   static_cast<T>(image[3]), static_cast<T>(image[2]), out);
    return FillVariances<T>(ctx, ctx.Out("Variances"));
  }

  // Boxes of each size and ratio on a grid within a square of `step` pixels.
  static T* Cell(const OpContext& ctx, T x, T y, int step, T image_w, T image_h, T* out) {
    const Floats& sizes = ctx.Attr<Floats>("fixed_sizes");
    for (size_t s = 0; s < sizes.size(); ++s) {
      const auto density = static_cast<int>(ctx.IntList("densities")[s]);
      const int shift = step / density;
      const double first_x = x - step / 2. + shift / 2., first_y = y - step / 2. + shift / 2.;
      for (double ratio : ctx.Attr<Floats>("fixed_ratios")) {
        const auto root = static_cast<float>(std::sqrt(static_cast<float>(ratio)));
        const double w = static_cast<float>(sizes[s]) * root;
        const double h = static_cast<float>(sizes[s]) / root;
        for (int i = 0; i < density * density; ++i) {
          const double cx = first_x + i % density * shift, cy = first_y + i / density * shift;
          *out++ = static_cast<T>(std::max((cx - w / 2.) / image_w, 0.));
          *out++ = static_cast<T>(std::max((cy - h / 2.) / image_h, 0.));
          *out++ = static_cast<T>(std::min((cx + w / 2.) / image_w, 1.));
          *out++ = static_cast<T>(std::min((cy + h / 2.) / image_h, 1.));
          if (ctx.Bool("clip"))
            for (T* v = out - 4; v < out; ++v) *v = std::min(std::max(*v, T(0)), T(1));
        }
      }
    }
    return out;
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(density_prior_box) {
  op.Doc("grids of boxes within each cell of a feature map, relative to the image");
  op.Input("Input", kNoBuffer).Input("Image", kNoBuffer).Output("Boxes").Output("Variances");
  op.Attr("variances", Floats{}).Attr("clip", true).Attr("flatten_to_2d", false);
  op.Attr("step_w", 0.0).Attr("step_h", 0.0).Attr("offset", 0.5);
  op.Attr("fixed_sizes", Floats{}).Attr("fixed_ratios", Floats{}).Attr("densities", Ints{});
  op.InferShape(InferDensity).Kernels<DensityBoxes, float, double>();
}

HEDDLE_EXAMPLES(density_prior_box, R"(
example one density
attr variances FLOATS [0.1, 0.1, 0.2, 0.2]
attr clip BOOLEAN true
attr flatten_to_2d BOOLEAN true
attr step_w FLOAT 0.0
attr step_h FLOAT 0.0
attr offset FLOAT 0.5
attr fixed_sizes FLOATS [2.0]
attr fixed_ratios FLOATS [1.0]
attr densities INTS [2]
in Input float32 [1, 1, 2, 2] -0.56 0.35 -0.12 0.87
in Image float32 [1, 1, 8, 8] -0.22 -0.42 -0.44 0.32 -0.78 -0.67 -0.4 -0.42 -0.95 -0.76 0.41 -0.52
  -0.24 -0.64 -0.47 0.23 -0.73 0.54 -0.78 0.33 0.4 0.03 -0.44 -0.17 -0.84 0.24 0.73 -0.92 0.51 0.94
  0.58 -0.74 -0.65 -0.58 0 0.71 -0.1 -0.86 0.59 -0.01 -0.86 0.23 0.14 -0.06 -0.31 -0.41 -0.57 0.01
  0.66 -0.81 0.62 -0.8 -0.07 -0.81 0.77 0.63 0.79 -0.55 -0.97 -0.28 0.54 0.78 -0.53 0.4
out Boxes float32 [16, 4] 0 0 0.25 0.25 0.25 0 0.5 0.25 0 0.25 0.25 0.5 0.25 0.25 0.5 0.5 0.5 0 0.75
  0.25 0.75 0 1 0.25 0.5 0.25 0.75 0.5 0.75 0.25 1 0.5 0 0.5 0.25 0.75 0.25 0.5 0.5 0.75 0 0.75 0.25
  1 0.25 0.75 0.5 1 0.5 0.5 0.75 0.75 0.75 0.5 1 0.75 0.5 0.75 0.75 1 0.75 0.75 1 1
out Variances float32 [16, 4] 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1
  0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1
  0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2

example not flattened
attr variances FLOATS [0.1, 0.1, 0.2, 0.2]
attr clip BOOLEAN false
attr flatten_to_2d BOOLEAN false
attr step_w FLOAT 0.0
attr step_h FLOAT 0.0
attr offset FLOAT 0.5
attr fixed_sizes FLOATS [2.0, 3.0]
attr fixed_ratios FLOATS [1.0]
attr densities INTS [1, 1]
in Input float32 [1, 1, 1, 2] -0.87 -0.73
in Image float32 [1, 1, 4, 8] -0.65 -0.13 -0.64 -0.04 0.22 0.71 -1 0.28 -0.89 -0.78 0.05 -0.59 -0.49
  -0.56 -0.02 -0.72 0.58 -0.89 0.44 -0.63 0.02 0.25 0.79 -0.4 -0.49 0.26 0.99 0.78 -0.86 -0.03 -0.24
  0.77
out Boxes float32 [1, 2, 2, 4] 0.125 0.25 0.375 0.75 0.0625 0.125 0.4375 0.875 0.625 0.25 0.875 0.75
  0.5625 0.125 0.9375 0.875
out Variances float32 [1, 2, 2, 4] 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2 0.1 0.1 0.2 0.2
)")

// density_prior_box: boxes on a finer grid within each cell of a feature map.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_checks.h"
#include "kernels/detection/box_slots.h"

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

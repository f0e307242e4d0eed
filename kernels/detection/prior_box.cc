#include <algorithm>
#include <cmath>

#include "core/interrupts.h"
#include "core/kernel_context.h"
#include "core/shape_context.h"

namespace heddle {
namespace {

// 1, then every ratio that is not there yet, and with `flip` its inverse.
Status Ratios(const OpContext& ctx, Floats* out) {
  *out = {1.0};
  for (double ratio : ctx.Attr<Floats>("aspect_ratios")) {
    if (!(ratio > 0)) return InvalidArgument("aspect_ratios must be positive; one is ", ratio);
    const bool known =
        std::any_of(out->begin(), out->end(), [&](double r) { return std::abs(r - ratio) < 1e-6; });
    if (known) continue;
    out->push_back(ratio);
    if (ctx.Bool("flip")) out->push_back(1.0 / ratio);
  }
  return Status::Ok();
}

Status PriorBoxShape(ShapeContext& ctx) {
  const Shape &input = ctx.InShape("Input"), &image = ctx.InShape("Image");
  if (!input.known_rank() || !image.known_rank()) return ctx.Defer();
  if (input.rank() != 4 || image.rank() != 4)
    return InvalidArgument("Input and Image must be [N, C, H, W]; they are ", input.ToString(),
                           " and ", image.ToString());
  const size_t sizes = ctx.Attr<Floats>("min_sizes").size();
  const size_t largest = ctx.Attr<Floats>("max_sizes").size();
  if (largest != 0 && largest != sizes)
    return InvalidArgument("max_sizes has ", largest, " elements, min_sizes ", sizes);
  if (ctx.Attr<Floats>("variances").size() != 4)
    return InvalidArgument("variances must have 4 elements");
  Floats ratios;
  HEDDLE_RETURN_IF_ERROR(Ratios(ctx, &ratios));
  const Shape out{input[2], input[3], static_cast<int64_t>(ratios.size() * sizes + largest), 4};
  ctx.SetOut("Boxes", out, ctx.InDType("Input"));
  ctx.SetOut("Variances", out, ctx.InDType("Input"));
  return Status::Ok();
}

// Half widths and heights of the boxes around every cell, in order.
template <typename T>
std::vector<std::pair<T, T>> HalfSizes(const KernelContext& ctx, const Floats& ratios) {
  std::vector<std::pair<T, T>> halves;
  const Floats &least = ctx.Attr<Floats>("min_sizes"), &most = ctx.Attr<Floats>("max_sizes");
  const bool sizes_first = ctx.Bool("min_max_aspect_ratios_order");
  for (size_t s = 0; s < least.size(); ++s) {
    const T size = static_cast<T>(least[s]);
    auto shaped = [&](double r) {
      const T root = std::sqrt(static_cast<T>(r));
      halves.emplace_back(size * root / 2, size / root / 2);
    };
    auto between = [&] {
      if (most.empty()) return;
      const T half = std::sqrt(size * static_cast<T>(most[s])) / 2;
      halves.emplace_back(half, half);
    };
    if (sizes_first) {
      halves.emplace_back(size / 2, size / 2);
      between();
    }
    for (double r : ratios)
      if (!sizes_first || std::abs(r - 1.0) >= 1e-6) shaped(r);
    if (!sizes_first) between();
  }
  return halves;
}

template <typename T>
struct PriorBox {
  static Status Run(KernelContext& ctx) {
    const Shape &input = ctx.In("Input").shape(), &image = ctx.In("Image").shape();
    const int64_t rows = input[2], columns = input[3];
    const T image_w = static_cast<T>(image[3]), image_h = static_cast<T>(image[2]);
    T step_w = static_cast<T>(ctx.Float("step_w")), step_h = static_cast<T>(ctx.Float("step_h"));
    if (step_w == 0 || step_h == 0) {
      step_w = image_w / static_cast<T>(columns);
      step_h = image_h / static_cast<T>(rows);
    }
    const T offset = static_cast<T>(ctx.Float("offset"));
    Floats ratios;
    HEDDLE_RETURN_IF_ERROR(Ratios(ctx, &ratios));
    const auto halves = HalfSizes<T>(ctx, ratios);
    T* box = ctx.Out("Boxes").mutable_data<T>();
    for (const int64_t y : Watched(rows)) {
      for (int64_t x = 0; x < columns; ++x) {
        const T cx = (static_cast<T>(x) + offset) * step_w;
        const T cy = (static_cast<T>(y) + offset) * step_h;
        for (const auto& [w, h] : halves) {
          *box++ = (cx - w) / image_w;
          *box++ = (cy - h) / image_h;
          *box++ = (cx + w) / image_w;
          *box++ = (cy + h) / image_h;
        }
      }
    }
    Tensor& boxes = ctx.Out("Boxes");
    if (ctx.Bool("clip"))
      for (T* b = boxes.mutable_data<T>(); b != box; ++b) *b = std::clamp(*b, T(0), T(1));
    T* variance = ctx.Out("Variances").mutable_data<T>();
    const Floats& variances = ctx.Attr<Floats>("variances");
    for (const auto part : Stretches(boxes.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        variance[i] = static_cast<T>(variances[static_cast<size_t>(i % 4)]);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(prior_box) {
  op.Doc(
      "Boxes of several sizes and aspect ratios around each cell of a feature map, relative to "
      "the image (Liu et al., SSD, 2016).");
  op.Input("Input", kNoBuffer).Input("Image", kNoBuffer).Output("Boxes").Output("Variances");
  op.Attr("min_sizes", Floats{}).Attr("max_sizes", Floats{}).Attr("aspect_ratios", Floats{});
  op.Attr("variances", Floats{}).Attr("flip", true).Attr("clip", true);
  op.Attr("step_w", 0.0).Attr("step_h", 0.0).Attr("offset", 0.5);
  op.Attr("min_max_aspect_ratios_order", false);
  op.InferShape(PriorBoxShape).Kernels<PriorBox, float, double>();
}

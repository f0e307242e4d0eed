// Colours as hue, saturation and value, and back.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/convert.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

template <typename T>
using Pixel = std::array<T, 3>;

template <typename T>
Pixel<T> ToHsv(const Pixel<T>& p) {
  const auto [r, g, b] = p;
  const T value = std::max(r, std::max(g, b)), range = value - std::min(r, std::min(g, b));
  const T saturation = value > 0 ? range / value : T(0);
  if (!(range > 0)) return {T(0), saturation, value};
  const T norm = T(1) / (T(6) * range);
  T hue = r == value   ? norm * (g - b)
          : g == value ? norm * (b - r) + T(2) / T(6)
                       : norm * (r - g) + T(4) / T(6);
  if (hue < 0) hue += T(1);
  return {hue, saturation, value};
}

template <typename T>
Pixel<T> ToRgb(const Pixel<T>& p) {
  const auto [hue, saturation, value] = p;
  const T h = hue * T(6);
  const auto unit = [](T x) { return std::min(std::max(x, T(0)), T(1)); };
  const Pixel<T> full{unit(std::abs(h - T(3)) - T(1)), unit(T(2) - std::abs(h - T(2))),
                      unit(T(2) - std::abs(h - T(4)))};
  Pixel<T> made;
  for (size_t i = 0; i < 3; ++i) made[i] = ((T(1) - saturation) + saturation * full[i]) * value;
  return made;
}

template <typename T, typename Fn>
Status EachPixel(KernelContext& ctx, Fn&& fn) {
  const Tensor& x = ctx.In("images");
  if (x.rank() < 1 || x.dim(-1) != 3)
    return InvalidArgument("images has shape ", x.shape().ToString(),
                           ", expected three channels at the end");
  const T* from = x.data<T>();
  T* to = ctx.Out("output").template mutable_data<T>();
  ctx.ParallelFor(x.numel() / 3, 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Pixel<T> made = fn(Pixel<T>{from[3 * i], from[3 * i + 1], from[3 * i + 2]});
      for (int64_t k = 0; k < 3; ++k) to[3 * i + k] = made[static_cast<size_t>(k)];
    }
  });
  return Status::Ok();
}

template <typename T>
struct RgbToHsv {
  static Status Run(KernelContext& ctx) { return EachPixel<T>(ctx, &ToHsv<T>); }
};
template <typename T>
struct HsvToRgb {
  static Status Run(KernelContext& ctx) { return EachPixel<T>(ctx, &ToRgb<T>); }
};

Status AdjustHue(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const double delta, NumberIn(ctx, "delta", 0));
  return EachPixel<float>(ctx, [delta](const Pixel<float>& p) {
    Pixel<float> hsv = ToHsv(p);
    const float hue = hsv[0] + static_cast<float>(delta);
    hsv[0] = hue - std::floor(hue);
    return ToRgb(hsv);
  });
}
Status AdjustSaturation(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const double scale, NumberIn(ctx, "scale", 1));
  return EachPixel<float>(ctx, [scale](const Pixel<float>& p) {
    Pixel<float> hsv = ToHsv(p);
    hsv[1] = std::min(1.0F, std::max(0.0F, hsv[1] * static_cast<float>(scale)));
    return ToRgb(hsv);
  });
}

// Distances from the mean of each channel of an image.
Status AdjustContrast(KernelContext& ctx) {
  const Tensor& x = ctx.In("images");
  HEDDLE_ASSIGN_OR_RETURN(const double factor, NumberIn(ctx, "contrast_factor", 1));
  if (x.rank() < 3)
    return InvalidArgument("images has shape ", x.shape().ToString(), ", expected rank 3 or more");
  const int64_t c = x.dim(-1), area = x.dim(-2) * x.dim(-3);
  if (x.numel() == 0) return Status::Ok();
  const int64_t images = x.shape().Product(0, x.rank() - 3);
  const float* from = x.data<float>();
  float* to = ctx.Out("output").mutable_data<float>();
  for (const int64_t n : Watched(images))
    for (int64_t k = 0; k < c; ++k) {
      double sum = 0;
      for (int64_t i = 0; i < area; ++i) sum += from[(n * area + i) * c + k];
      const auto mean = static_cast<float>(sum / static_cast<double>(area));
      for (int64_t i = 0; i < area; ++i) {
        const int64_t at = (n * area + i) * c + k;
        to[at] = (from[at] - mean) * static_cast<float>(factor) + mean;
      }
    }
  return Status::Ok();
}

OpDef& DefineColor(OpDef& op, const char* doc) {
  op.Doc(doc).Input("images");
  return op.Output("output").InferShape(SameShape).KernelKey("images");
}

// A position outside the image, as fill_mode reads it.
float Inside(float at, int64_t n, const std::string& mode) {
  const auto last = static_cast<float>(n - 1), size = static_cast<float>(n);
  if (mode == "CONSTANT") return at;
  if (mode != "NEAREST" && (at < 0 || at > last)) {
    if (n <= 1) return 0;
    if (mode == "REFLECT") {
      const float twice = 2 * size;
      if (at < 0) {
        at += twice * std::trunc(-at / twice);
        at = at < -size ? at + twice : -at - 1;
      } else {
        at -= twice * std::trunc(at / twice);
        if (at >= size) at = twice - at - 1;
      }
    } else if (at < 0) {
      at += size * (std::trunc(-at / last) + 1);
    } else {
      at -= size * std::trunc(at / last);
    }
  }
  return std::min(std::max(at, 0.0F), last);
}

Status ProjectShape(ShapeContext& ctx) {
  Shape x = ctx.InShape("images");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() != 4) return InvalidArgument("images has shape ", x.ToString(), ", expected rank 4");
  x[1] = x[2] = -1;
  if (Known(ctx, "output_shape")) {
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts size, IntsIn(ctx, "output_shape"));
    if (size.size() != 2 || size[0] < 1 || size[1] < 1)
      return InvalidArgument("output_shape has ", size.size(), " elements, expected two above 0");
    x[1] = size[0];
    x[2] = size[1];
  }
  ctx.SetOut("transformed_images", x, ctx.InDType("images"));
  return Status::Ok();
}

template <typename T>
struct Project {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("images"), &transforms = ctx.In("transforms");
    HEDDLE_ASSIGN_OR_RETURN(const double fill, NumberIn(ctx, "fill_value", 0));
    const std::string &mode = ctx.Str("fill_mode"), &how = ctx.Str("interpolation");
    if (mode != "CONSTANT" && mode != "NEAREST" && mode != "REFLECT" && mode != "WRAP")
      return InvalidArgument("fill_mode is '", mode,
                             "', expected CONSTANT, NEAREST, REFLECT or WRAP");
    if (how != "NEAREST" && how != "BILINEAR")
      return InvalidArgument("interpolation is '", how, "', expected NEAREST or BILINEAR");
    const int64_t n = x.dim(0), h = x.dim(1), w = x.dim(2), c = x.dim(3);
    if (transforms.rank() != 2 || transforms.dim(1) != 8 || transforms.dtype() != DType::kF32 ||
        (transforms.dim(0) != 1 && transforms.dim(0) != n))
      return InvalidArgument("transforms is ", Name(transforms.dtype()), " ",
                             transforms.shape().ToString(), ", expected float32 [1 or ", n, ", 8]");
    Tensor& out = ctx.Out("transformed_images");
    if (out.numel() == 0) return Status::Ok();
    const int64_t oh = out.dim(1), ow = out.dim(2);
    const T* from = x.data<T>();
    T* to = out.template mutable_data<T>();
    for (const int64_t i : Watched(n * oh * ow)) {
      const int64_t b = i / (oh * ow);
      const auto oy = static_cast<float>(i / ow % oh), ox = static_cast<float>(i % ow);
      const float* t = transforms.data<float>() + (transforms.dim(0) == 1 ? 0 : b * 8);
      const float scale = t[6] * ox + t[7] * oy + 1;
      const float px = scale == 0 ? 0 : Inside((t[0] * ox + t[1] * oy + t[2]) / scale, w, mode);
      const float py = scale == 0 ? 0 : Inside((t[3] * ox + t[4] * oy + t[5]) / scale, h, mode);
      const auto read = [&](float fy, float fx, int64_t k) {
        if (!(fy >= 0 && fy < static_cast<float>(h) && fx >= 0 && fx < static_cast<float>(w)))
          return static_cast<T>(fill);
        return from[((b * h + static_cast<int64_t>(fy)) * w + static_cast<int64_t>(fx)) * c + k];
      };
      for (int64_t k = 0; k < c; ++k) {
        T& made = to[i * c + k];
        if (scale == 0) {
          made = static_cast<T>(fill);
        } else if (how == "NEAREST") {
          made = read(std::round(py), std::round(px), k);
        } else {
          const float y0 = std::floor(py), x0 = std::floor(px), y1 = y0 + 1, x1 = x0 + 1;
          const auto line = [&](float y) {
            return (x1 - px) * static_cast<float>(read(y, x0, k)) +
                   (px - x0) * static_cast<float>(read(y, x1, k));
          };
          made = static_cast<T>((y1 - py) * line(y0) + (py - y0) * line(y1));
        }
      }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(rgb_to_hsv) {
  DefineColor(op, "hue, saturation and value of colours").Kernels<RgbToHsv, float, double>();
}
HEDDLE_OP(hsv_to_rgb) {
  DefineColor(op, "colours of hue, saturation and value").Kernels<HsvToRgb, float, double>();
}
HEDDLE_OP(adjust_hue) {
  DefineColor(op, "colours with their hue turned by delta").Input("delta");
  op.Kernel(DType::kF32, AdjustHue);
}
HEDDLE_OP(adjust_saturation) {
  DefineColor(op, "colours with their saturation times scale").Input("scale");
  op.Kernel(DType::kF32, AdjustSaturation);
}
HEDDLE_OP(adjust_contrast) {
  DefineColor(op, "images with distances from the mean times contrast_factor")
      .Input("contrast_factor");
  op.Kernel(DType::kF32, AdjustContrast);
}
HEDDLE_OP(projective_transform) {
  op.Doc("images read where projective transforms say").Input("images").Input("transforms");
  op.Input("output_shape", kShapeValue).Input("fill_value").Output("transformed_images");
  op.Attr("interpolation", "NEAREST").Attr("fill_mode", "CONSTANT").KernelKey("images");
  op.InferShape(ProjectShape).Kernels<Project, float, double, uint8_t, int32_t, int64_t>();
}

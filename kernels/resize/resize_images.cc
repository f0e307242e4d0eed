// Images resized in float32 arithmetic, and the gradients. Images are [N, H, W, C].
#include <cmath>
#include <memory_resource>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/operands/narrow.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

struct Flags {
  bool align = false, half = false;
};
Flags FlagsOf(const OpContext& ctx) {
  return {ctx.Bool("align_corners"), ctx.Bool("half_pixel_centers")};
}
float ScaleOf(int64_t in, int64_t out, bool align) {
  return align && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                          : static_cast<float>(in) / static_cast<float>(out);
}

template <typename Context>
Result<ShortInts> SizeIn(const Context& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts size, IntsIn(ctx, "size"));
  if (size.size() != 2 || size[0] <= 0 || size[1] <= 0)
    return InvalidArgument("size has ", size.size(), " elements",
                           size.size() == 2 ? ", one of them not positive" : ", expected 2");
  return size;
}

// Bilinear, bicubic and area means give float32.
Status ResizeImagesShape(ShapeContext& ctx) {
  Shape x = ctx.InShape("images");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() != 4) return InvalidArgument("images has shape ", x.ToString(), ", expected rank 4");
  if ((x[1] == 0 || x[2] == 0)) return InvalidArgument("images has no pixels: ", x.ToString());
  x[1] = x[2] = -1;
  if (Known(ctx, "size")) {
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts size, SizeIn(ctx));
    x[1] = size[0];
    x[2] = size[1];
  }
  const bool keeps = ctx.Str("method") == "nearest";
  ctx.SetOut("resized_images", x, keeps ? ctx.InDType("images") : DType::kF32);
  return Status::Ok();
}

// The input positions below and above each output position, and its distance between them.
struct LineTaps {
  explicit LineTaps(CallHeap* heap) : low(heap), high(heap), part(heap) {}
  std::pmr::vector<int64_t> low, high;
  std::pmr::vector<float> part;
};
LineTaps LinearTaps(int64_t in, int64_t out, Flags flags, CallHeap* heap) {
  LineTaps t(heap);
  const auto count = static_cast<size_t>(out);
  t.low.reserve(count);
  t.high.reserve(count);
  t.part.reserve(count);
  const float scale = ScaleOf(in, out, flags.align);
  for (const int64_t i : Watched(out)) {
    const auto at = static_cast<float>(i);
    const float from = flags.half ? (at + 0.5F) * scale - 0.5F : at * scale;
    const float floor = std::floor(from);
    t.low.push_back(std::max<int64_t>(static_cast<int64_t>(floor), 0));
    t.high.push_back(std::min<int64_t>(static_cast<int64_t>(std::ceil(from)), in - 1));
    t.low.back() = std::min(t.low.back(), in - 1);
    t.high.back() = std::max<int64_t>(t.high.back(), 0);
    t.part.push_back(from - floor);
  }
  return t;
}

Status Bilinear(KernelContext& ctx) {
  const Tensor x = InFloat(ctx, ctx.In("images"));
  Tensor& out = ctx.Out("resized_images");
  if (out.numel() == 0) return Status::Ok();
  const int64_t h = x.dim(1), w = x.dim(2), c = x.dim(3), oh = out.dim(1), ow = out.dim(2);
  CallHeap heap(ctx);
  const LineTaps ys = LinearTaps(h, oh, FlagsOf(ctx), &heap),
                 xs = LinearTaps(w, ow, FlagsOf(ctx), &heap);
  const float* from = x.data<float>();
  float* to = out.mutable_data<float>();
  ctx.ParallelFor(x.dim(0) * oh, 1 + 8192 / (1 + ow * c), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const auto y = static_cast<size_t>(r % oh);
      const float* image = from + r / oh * h * w * c;
      const float *top = image + ys.low[y] * w * c, *bottom = image + ys.high[y] * w * c;
      const float py = ys.part[y];
      for (int64_t k = 0; k < ow; ++k) {
        const auto q = static_cast<size_t>(k);
        const int64_t a = xs.low[q] * c, b = xs.high[q] * c;
        const float px = xs.part[q];
        float* pixel = to + (r * ow + k) * c;
        for (int64_t ch = 0; ch < c; ++ch) {
          const float t = top[a + ch] + (top[b + ch] - top[a + ch]) * px;
          const float u = bottom[a + ch] + (bottom[b + ch] - bottom[a + ch]) * px;
          pixel[ch] = t + (u - t) * py;
        }
      }
    }
  });
  return Status::Ok();
}

Status CheckGrads(const Shape& g, const Shape& x) {
  if (g[0] == x[0] && g[3] == x[3] && (x.numel() == 0) == (g.numel() == 0)) return Status::Ok();
  return InvalidArgument("grads has shape ", g.ToString(), " for images ", x.ToString());
}

template <typename T>
struct BilinearGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor g = InFloat(ctx, ctx.In("grads"));
    Tensor& out = ctx.Out("output");
    HEDDLE_RETURN_IF_ERROR(CheckGrads(g.shape(), out.shape()));
    const int64_t h = out.dim(1), w = out.dim(2), c = out.dim(3), gh = g.dim(1), gw = g.dim(2);
    WatchedFill(out.template mutable_data<T>(), out.numel(), T(0));
    if (out.numel() == 0) return Status::Ok();
    CallHeap heap(ctx);
    const LineTaps ys = LinearTaps(h, gh, FlagsOf(ctx), &heap),
                   xs = LinearTaps(w, gw, FlagsOf(ctx), &heap);
    const float* from = g.data<float>();
    for (const int64_t r : Watched(g.dim(0) * gh)) {
      const auto y = static_cast<size_t>(r % gh);
      T* image = out.template mutable_data<T>() + r / gh * h * w * c;
      for (int64_t k = 0; k < gw; ++k) {
        const auto q = static_cast<size_t>(k);
        const float py = ys.part[y], px = xs.part[q];
        const auto add = [&](int64_t iy, int64_t ix, float weight) {
          for (int64_t ch = 0; ch < c; ++ch)
            image[(iy * w + ix) * c + ch] += static_cast<T>(from[(r * gw + k) * c + ch] * weight);
        };
        add(ys.low[y], xs.low[q], (1 - py) * (1 - px));
        add(ys.low[y], xs.high[q], (1 - py) * px);
        add(ys.high[y], xs.low[q], py * (1 - px));
        add(ys.high[y], xs.high[q], py * px);
      }
    }
    return Status::Ok();
  }
};

std::pmr::vector<int64_t> NearestPlaces(int64_t in, int64_t out, Flags flags, CallHeap* heap) {
  std::pmr::vector<int64_t> places(heap);
  places.reserve(static_cast<size_t>(out));
  const float scale = ScaleOf(in, out, flags.align);
  for (const int64_t i : Watched(out)) {
    const auto at = static_cast<float>(i);
    const float from = flags.half ? (at + 0.5F) * scale : at * scale;
    const float place = flags.align ? std::round(from) : std::floor(from);
    places.push_back(std::clamp<int64_t>(static_cast<int64_t>(place), 0, in - 1));
  }
  return places;
}

Status Nearest(KernelContext& ctx) {
  const Tensor& x = ctx.In("images");
  Tensor& out = ctx.Out("resized_images");
  if (out.numel() == 0) return Status::Ok();
  const int64_t h = x.dim(1), w = x.dim(2), oh = out.dim(1), ow = out.dim(2);
  const int64_t row = x.dim(3) * static_cast<int64_t>(SizeOf(x.dtype()));
  CallHeap heap(ctx);
  const auto ys = NearestPlaces(h, oh, FlagsOf(ctx), &heap),
             xs = NearestPlaces(w, ow, FlagsOf(ctx), &heap);
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  ctx.ParallelFor(x.dim(0) * oh, 1 + 32768 / (1 + ow * row), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const std::byte* line = from + (r / oh * h + ys[static_cast<size_t>(r % oh)]) * w * row;
      for (int64_t k = 0; k < ow; ++k)
        CopyRow(to + (r * ow + k) * row, line + xs[static_cast<size_t>(k)] * row, row);
    }
  });
  return Status::Ok();
}

template <typename T>
struct NearestGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& g = ctx.In("grads");
    Tensor& out = ctx.Out("output");
    HEDDLE_RETURN_IF_ERROR(CheckGrads(g.shape(), out.shape()));
    const int64_t h = out.dim(1), w = out.dim(2), c = out.dim(3), gh = g.dim(1), gw = g.dim(2);
    T* to = out.template mutable_data<T>();
    WatchedFill(to, out.numel(), T(0));
    if (out.numel() == 0) return Status::Ok();
    CallHeap heap(ctx);
    const auto ys = NearestPlaces(h, gh, FlagsOf(ctx), &heap),
               xs = NearestPlaces(w, gw, FlagsOf(ctx), &heap);
    for (const int64_t r : Watched(g.dim(0) * gh)) {
      T* line = to + (r / gh * h + ys[static_cast<size_t>(r % gh)]) * w * c;
      for (int64_t k = 0; k < gw; ++k)
        for (int64_t ch = 0; ch < c; ++ch)
          line[xs[static_cast<size_t>(k)] * c + ch] += g.data<T>()[(r * gw + k) * c + ch];
    }
    return Status::Ok();
  }
};

// Four positions and weights for each output position.
struct CubicTaps {
  explicit CubicTaps(CallHeap* heap) : at(heap), weight(heap) {}
  std::pmr::vector<std::array<int64_t, 4>> at;
  std::pmr::vector<std::array<float, 4>> weight;
};
// The weights of positions `x` and `x` + 1 away, from a table of 1024 steps.
std::array<float, 2> KeysWeights(int64_t step, float a) {
  constexpr double kSteps = 1024;
  const double x = static_cast<double>(step) / kSteps, y = x + 1;
  const double d = a;
  return {static_cast<float>(((d + 2) * x - (d + 3)) * x * x + 1),
          static_cast<float>(((d * y - 5 * d) * y + 8 * d) * y - 4 * d)};
}
CubicTaps MakeCubicTaps(int64_t in, int64_t out, Flags flags, CallHeap* heap) {
  constexpr int64_t kSteps = 1024;
  CubicTaps taps(heap);
  taps.at.reserve(static_cast<size_t>(out));
  taps.weight.reserve(static_cast<size_t>(out));
  const float scale = ScaleOf(in, out, flags.align), a = flags.half ? -0.5F : -0.75F;
  for (const int64_t i : Watched(out)) {
    const auto o = static_cast<float>(i);
    const float from = flags.half ? (o + 0.5F) * scale - 0.5F : o * scale;
    const auto floor = static_cast<int64_t>(std::floor(from));
    const auto step = static_cast<int64_t>(
        std::lrint((from - static_cast<float>(floor)) * static_cast<float>(kSteps)));
    const auto near = KeysWeights(step, a), far = KeysWeights(kSteps - step, a);
    std::array<float, 4> weight{near[1], near[0], far[0], far[1]};
    std::array<int64_t, 4> at{};
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      const int64_t p = floor - 1 + k;
      at[k] = std::clamp<int64_t>(p, 0, in - 1);
      if (flags.half && p != at[k]) weight[k] = 0;
      sum += weight[k];
    }
    if (flags.half && std::abs(sum) >= 1000 * std::numeric_limits<float>::min())
      for (float& v : weight) v /= sum;
    taps.at.push_back(at);
    taps.weight.push_back(weight);
  }
  return taps;
}

Status Bicubic(KernelContext& ctx) {
  const Tensor x = InFloat(ctx, ctx.In("images"));
  Tensor& out = ctx.Out("resized_images");
  if (out.numel() == 0) return Status::Ok();
  const int64_t h = x.dim(1), w = x.dim(2), c = x.dim(3), oh = out.dim(1), ow = out.dim(2);
  CallHeap heap(ctx);
  const CubicTaps ys = MakeCubicTaps(h, oh, FlagsOf(ctx), &heap),
                  xs = MakeCubicTaps(w, ow, FlagsOf(ctx), &heap);
  const float* from = x.data<float>();
  float* to = out.mutable_data<float>();
  ctx.ParallelFor(x.dim(0) * oh, 1 + 2048 / (1 + ow * c), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const auto y = static_cast<size_t>(r % oh);
      const float* image = from + r / oh * h * w * c;
      for (int64_t k = 0; k < ow; ++k) {
        const auto q = static_cast<size_t>(k);
        for (int64_t ch = 0; ch < c; ++ch) {
          float sum = 0;
          for (size_t i = 0; i < 4; ++i) {
            float line = 0;
            for (size_t j = 0; j < 4; ++j)
              line += image[(ys.at[y][i] * w + xs.at[q][j]) * c + ch] * xs.weight[q][j];
            sum += line * ys.weight[y][i];
          }
          to[(r * ow + k) * c + ch] = sum;
        }
      }
    }
  });
  return Status::Ok();
}

template <typename T>
struct BicubicGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor g = InFloat(ctx, ctx.In("grads"));
    Tensor& out = ctx.Out("output");
    HEDDLE_RETURN_IF_ERROR(CheckGrads(g.shape(), out.shape()));
    const int64_t h = out.dim(1), w = out.dim(2), c = out.dim(3), gh = g.dim(1), gw = g.dim(2);
    T* to = out.template mutable_data<T>();
    WatchedFill(to, out.numel(), T(0));
    if (out.numel() == 0) return Status::Ok();
    CallHeap heap(ctx);
    const CubicTaps ys = MakeCubicTaps(h, gh, FlagsOf(ctx), &heap);
    const CubicTaps xs = MakeCubicTaps(w, gw, FlagsOf(ctx), &heap);
    for (const int64_t r : Watched(g.dim(0) * gh)) {
      const auto y = static_cast<size_t>(r % gh);
      T* image = to + r / gh * h * w * c;
      for (int64_t k = 0; k < gw; ++k) {
        const auto q = static_cast<size_t>(k);
        for (size_t i = 0; i < 4; ++i)
          for (size_t j = 0; j < 4; ++j)
            for (int64_t ch = 0; ch < c; ++ch)
              image[(ys.at[y][i] * w + xs.at[q][j]) * c + ch] += static_cast<T>(
                  g.data<float>()[(r * gw + k) * c + ch] * ys.weight[y][i] * xs.weight[q][j]);
      }
    }
    return Status::Ok();
  }
};

// The share of each input position under each output position.
struct AreaTaps {
  std::vector<int64_t> first;
  std::vector<std::vector<float>> weight;
};
AreaTaps MakeAreaTaps(int64_t in, int64_t out, bool align) {
  AreaTaps taps;
  const float scale = ScaleOf(in, out, align);
  for (const int64_t i : Watched(out)) {
    const float begin = static_cast<float>(i) * scale, end = static_cast<float>(i + 1) * scale;
    const auto first = static_cast<int64_t>(std::floor(begin));
    const auto last = static_cast<int64_t>(std::ceil(end));
    std::vector<float> weight;
    for (int64_t p = first; p < last; ++p) {
      const auto lo = static_cast<float>(p), hi = static_cast<float>(p + 1);
      const float part =
          lo < begin ? (hi > end ? scale : hi - begin) : (hi > end ? end - lo : 1.0F);
      weight.push_back(part);
    }
    taps.first.push_back(first);
    taps.weight.push_back(std::move(weight));
  }
  return taps;
}

Status Area(KernelContext& ctx) {
  const Tensor x = InFloat(ctx, ctx.In("images"));
  Tensor& out = ctx.Out("resized_images");
  if (out.numel() == 0) return Status::Ok();
  const int64_t h = x.dim(1), w = x.dim(2), c = x.dim(3), oh = out.dim(1), ow = out.dim(2);
  const bool align = ctx.Bool("align_corners");
  const AreaTaps ys = MakeAreaTaps(h, oh, align), xs = MakeAreaTaps(w, ow, align);
  const float area = ScaleOf(h, oh, align) * ScaleOf(w, ow, align);
  const float* from = x.data<float>();
  float* to = out.mutable_data<float>();
  for (const int64_t r : Watched(x.dim(0) * oh)) {
    const auto y = static_cast<size_t>(r % oh);
    const float* image = from + r / oh * h * w * c;
    for (int64_t k = 0; k < ow; ++k) {
      const auto q = static_cast<size_t>(k);
      for (int64_t ch = 0; ch < c; ++ch) {
        float sum = 0;
        for (size_t i = 0; i < ys.weight[y].size(); ++i)
          for (size_t j = 0; j < xs.weight[q].size(); ++j) {
            const int64_t iy = std::min(ys.first[y] + static_cast<int64_t>(i), h - 1);
            const int64_t ix = std::min(xs.first[q] + static_cast<int64_t>(j), w - 1);
            sum += image[(iy * w + ix) * c + ch] * ys.weight[y][i] * xs.weight[q][j];
          }
        to[(r * ow + k) * c + ch] = sum / area;
      }
    }
  }
  return Status::Ok();
}

Status ResizeImages(KernelContext& ctx) {
  const std::string& method = ctx.Str("method");
  if (method == "bilinear") return Bilinear(ctx);
  if (method == "nearest") return Nearest(ctx);
  if (method == "bicubic") return Bicubic(ctx);
  if (method == "area" && !ctx.Bool("half_pixel_centers")) return Area(ctx);
  return InvalidArgument("method is '", method,
                         "', expected bilinear, nearest, bicubic, or area without "
                         "half_pixel_centers");
}

Status ResizeImagesGradShape(ShapeContext& ctx) {
  const Shape &g = ctx.InShape("grads"), &x = ctx.InShape("original_image");
  if (!x.known_rank() || !g.known_rank()) return ctx.Defer();
  if (x.rank() != 4 || g.rank() != 4)
    return InvalidArgument("grads has shape ", g.ToString(), " and original_image ", x.ToString(),
                           ", expected rank 4");
  ctx.SetOut("output", x, ctx.InDType("original_image"));
  return Status::Ok();
}
Status NearestGradShape(ShapeContext& ctx) {
  Shape g = ctx.InShape("grads");
  if (!g.known_rank()) return ctx.Defer();
  if (g.rank() != 4) return InvalidArgument("grads has shape ", g.ToString(), ", expected rank 4");
  if (g[1] == 0 || g[2] == 0) return InvalidArgument("grads has no pixels: ", g.ToString());
  g[1] = g[2] = -1;
  if (Known(ctx, "size")) {
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts size, SizeIn(ctx));
    g[1] = size[0];
    g[2] = size[1];
  }
  ctx.SetOut("output", g, ctx.InDType("grads"));
  return Status::Ok();
}

template <typename T>
struct ResizeImagesGrad {
  static Status Run(KernelContext& ctx) {
    const std::string& method = ctx.Str("method");
    if (method == "bilinear") return BilinearGrad<T>::Run(ctx);
    if (method == "bicubic") return BicubicGrad<T>::Run(ctx);
    return InvalidArgument("method is '", method, "', expected bilinear or bicubic");
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(resize_images) {
  op.Doc(
      "images [N, H, W, C] resized: between the four nearest pixels, by the nearest one, by cubic "
      "curves or by the mean of what a pixel covers; float32 but for the nearest pixel");
  op.Input("images").Input("size", kShapeValue).Output("resized_images").KernelKey("images");
  op.Attr("method", "bilinear").Attr("align_corners", false).Attr("half_pixel_centers", false);
  op.InferShape(ResizeImagesShape);
  op.Kernel({DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kU8, DType::kI8,
             DType::kI16, DType::kI32, DType::kI64},
            ResizeImages);
}
HEDDLE_OP(resize_images_grad) {
  op.Doc("gradient of resize_images by bilinear or bicubic interpolation");
  op.Input("grads").Input("original_image").Output("output").KernelKey("original_image");
  op.Attr("method", "bilinear").Attr("align_corners", false).Attr("half_pixel_centers", false);
  op.InferShape(ResizeImagesGradShape).Kernels<ResizeImagesGrad, float, double>();
}
HEDDLE_OP(resize_nearest_images_grad) {
  op.Doc("gradient of resize_images by the nearest pixel, for images of a size");
  op.Input("grads").Input("size", kShapeValue).Output("output").KernelKey("grads");
  op.Attr("align_corners", false).Attr("half_pixel_centers", false).InferShape(NearestGradShape);
  op.Kernels<NearestGrad, float, double, uint8_t, int8_t, int32_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

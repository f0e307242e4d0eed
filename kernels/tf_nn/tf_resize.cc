// Images resized by TensorFlow's rules, and the gradients. Images are [N, H, W, C].
#include <cmath>

#include "kernels/elementwise/convert.h"
#include "kernels/onnx/operands.h"

namespace heddle {
namespace {

struct Flags {
  bool align = false, half = false;
};
Flags FlagsOf(const OpContext& ctx) {
  return {ctx.Bool("align_corners"),
          ctx.def().FindAttr("half_pixel_centers") >= 0 && ctx.Bool("half_pixel_centers")};
}
float ScaleOf(int64_t in, int64_t out, bool align) {
  return align && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                          : static_cast<float>(in) / static_cast<float>(out);
}

template <typename Context>
Result<Ints> SizeIn(const Context& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Ints size, IntsIn(ctx, "size"));
  if (size.size() != 2 || size[0] <= 0 || size[1] <= 0)
    return InvalidArgument("size has ", size.size(), " elements",
                           size.size() == 2 ? ", one of them not positive" : ", expected 2");
  return size;
}

// out_dtype kUnknown: the images'.
template <DType kDType, bool kGrad>
Status ResizeShape(ShapeContext& ctx) {
  constexpr Key kIn = kGrad ? Key("grads") : Key("images");
  constexpr Key kOut = kGrad ? Key("output") : Key("resized_images");
  Shape x = ctx.InShape(kIn);
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() != 4)
    return InvalidArgument(kIn.name, " has shape ", x.ToString(), ", expected rank 4");
  if ((x[1] == 0 || x[2] == 0)) return InvalidArgument(kIn.name, " has no pixels: ", x.ToString());
  x[1] = x[2] = -1;
  if (Known(ctx, "size")) {
    HEDDLE_ASSIGN_OR_RETURN(const Ints size, SizeIn(ctx));
    x[1] = size[0];
    x[2] = size[1];
  }
  ctx.SetOut(kOut, x, kDType == DType::kUnknown ? ctx.InDType(kIn) : kDType);
  return Status::Ok();
}

// Where each output position reads: the positions below and above, and how far in between.
struct Taps {
  std::vector<int64_t> low, high;
  std::vector<float> part;
};
Taps LinearTaps(int64_t in, int64_t out, Flags flags) {
  Taps t;
  const float scale = ScaleOf(in, out, flags.align);
  for (int64_t i = 0; i < out; ++i) {
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

Tensor InFloat(const KernelContext& ctx, const Tensor& t) {
  if (t.dtype() == DType::kF32) return t;
  Tensor wide = ctx.Scratch(DType::kF32, t.shape());
  ConvertElements(ctx, t.raw(), t.dtype(), wide.mutable_raw(), DType::kF32, t.numel());
  return wide;
}

Status Bilinear(KernelContext& ctx) {
  const Tensor x = InFloat(ctx, ctx.In("images"));
  Tensor& out = ctx.Out("resized_images");
  const int64_t h = x.dim(1), w = x.dim(2), c = x.dim(3), oh = out.dim(1), ow = out.dim(2);
  const Taps ys = LinearTaps(h, oh, FlagsOf(ctx)), xs = LinearTaps(w, ow, FlagsOf(ctx));
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

Status GradLikeOriginal(ShapeContext& ctx) {
  const Shape &g = ctx.InShape("grads"), &x = ctx.InShape("original_image");
  if (!x.known_rank() || !g.known_rank()) return ctx.Defer();
  if (x.rank() != 4 || g.rank() != 4)
    return InvalidArgument("grads has shape ", g.ToString(), " and original_image ", x.ToString(),
                           ", expected rank 4");
  ctx.SetOut("output", x, ctx.InDType("original_image"));
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
    std::fill(out.template mutable_data<T>(), out.template mutable_data<T>() + out.numel(), T(0));
    if (out.numel() == 0) return Status::Ok();
    const Taps ys = LinearTaps(h, gh, FlagsOf(ctx)), xs = LinearTaps(w, gw, FlagsOf(ctx));
    const float* from = g.data<float>();
    for (int64_t r = 0; r < g.dim(0) * gh; ++r) {
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

std::vector<int64_t> NearestPlaces(int64_t in, int64_t out, Flags flags) {
  std::vector<int64_t> places;
  const float scale = ScaleOf(in, out, flags.align);
  for (int64_t i = 0; i < out; ++i) {
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
  const int64_t h = x.dim(1), w = x.dim(2), oh = out.dim(1), ow = out.dim(2);
  const int64_t row = x.dim(3) * static_cast<int64_t>(SizeOf(x.dtype()));
  const auto ys = NearestPlaces(h, oh, FlagsOf(ctx)), xs = NearestPlaces(w, ow, FlagsOf(ctx));
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  if (row == 0) return Status::Ok();
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
    std::fill(to, to + out.numel(), T(0));
    if (out.numel() == 0) return Status::Ok();
    const auto ys = NearestPlaces(h, gh, FlagsOf(ctx)), xs = NearestPlaces(w, gw, FlagsOf(ctx));
    for (int64_t r = 0; r < g.dim(0) * gh; ++r) {
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
  std::vector<std::array<int64_t, 4>> at;
  std::vector<std::array<float, 4>> weight;
};
// The weights of positions `x` and `x` + 1 away, from a table of 1024 steps.
std::array<float, 2> CubicWeights(int64_t step, float a) {
  constexpr double kSteps = 1024;
  const double x = static_cast<double>(step) / kSteps, y = x + 1;
  const double d = a;
  return {static_cast<float>(((d + 2) * x - (d + 3)) * x * x + 1),
          static_cast<float>(((d * y - 5 * d) * y + 8 * d) * y - 4 * d)};
}
CubicTaps MakeCubicTaps(int64_t in, int64_t out, Flags flags) {
  constexpr int64_t kSteps = 1024;
  CubicTaps taps;
  const float scale = ScaleOf(in, out, flags.align), a = flags.half ? -0.5F : -0.75F;
  for (int64_t i = 0; i < out; ++i) {
    const auto o = static_cast<float>(i);
    const float from = flags.half ? (o + 0.5F) * scale - 0.5F : o * scale;
    const auto floor = static_cast<int64_t>(std::floor(from));
    const auto step = static_cast<int64_t>(
        std::lrint((from - static_cast<float>(floor)) * static_cast<float>(kSteps)));
    const auto near = CubicWeights(step, a), far = CubicWeights(kSteps - step, a);
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
  const int64_t h = x.dim(1), w = x.dim(2), c = x.dim(3), oh = out.dim(1), ow = out.dim(2);
  const CubicTaps ys = MakeCubicTaps(h, oh, FlagsOf(ctx)), xs = MakeCubicTaps(w, ow, FlagsOf(ctx));
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
    std::fill(to, to + out.numel(), T(0));
    if (out.numel() == 0) return Status::Ok();
    const CubicTaps ys = MakeCubicTaps(h, gh, FlagsOf(ctx));
    const CubicTaps xs = MakeCubicTaps(w, gw, FlagsOf(ctx));
    for (int64_t r = 0; r < g.dim(0) * gh; ++r) {
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

// How much of each input position lies under each output position.
struct AreaTaps {
  std::vector<int64_t> first;
  std::vector<std::vector<float>> weight;
};
AreaTaps MakeAreaTaps(int64_t in, int64_t out, bool align) {
  AreaTaps taps;
  const float scale = ScaleOf(in, out, align);
  for (int64_t i = 0; i < out; ++i) {
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
  const int64_t h = x.dim(1), w = x.dim(2), c = x.dim(3), oh = out.dim(1), ow = out.dim(2);
  const bool align = ctx.Bool("align_corners");
  const AreaTaps ys = MakeAreaTaps(h, oh, align), xs = MakeAreaTaps(w, ow, align);
  const float area = ScaleOf(h, oh, align) * ScaleOf(w, ow, align);
  const float* from = x.data<float>();
  float* to = out.mutable_data<float>();
  for (int64_t r = 0; r < x.dim(0) * oh; ++r) {
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

OpDef& Define(OpDef& op, const char* doc) {
  op.Doc(doc).Input("images").Input("size", kShapeValue).Output("resized_images");
  return op.Attr("align_corners", false).KernelKey("images");
}
OpDef& DefineGrad(OpDef& op, const char* doc) {
  op.Doc(doc).Input("grads").Input("original_image").Output("output");
  op.Attr("align_corners", false).Attr("half_pixel_centers", false).KernelKey("original_image");
  return op.InferShape(GradLikeOriginal);
}
constexpr std::initializer_list<DType> kImages = {DType::kF32,  DType::kF64, DType::kF16,
                                                  DType::kBF16, DType::kU8,  DType::kI8,
                                                  DType::kI16,  DType::kI32, DType::kI64};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_resize_bilinear) {
  Define(op, "images resized, between the four nearest pixels; float32").Kernel(kImages, Bilinear);
  op.Attr("half_pixel_centers", false).InferShape(ResizeShape<DType::kF32, false>);
}
HEDDLE_OP(tf_resize_bilinear_grad) {
  DefineGrad(op, "gradient of tf_resize_bilinear").Kernels<BilinearGrad, float, double>();
}
HEDDLE_OP(tf_resize_nearest_neighbor) {
  Define(op, "images resized by the nearest pixel").AnyKernel(Nearest);
  op.Attr("half_pixel_centers", false).InferShape(ResizeShape<DType::kUnknown, false>);
}
HEDDLE_OP(tf_resize_nearest_neighbor_grad) {
  op.Doc("gradient of tf_resize_nearest_neighbor").Input("grads").Input("size", kShapeValue);
  op.Output("output").Attr("align_corners", false).Attr("half_pixel_centers", false);
  op.KernelKey("grads").InferShape(ResizeShape<DType::kUnknown, true>);
  op.Kernels<NearestGrad, float, double, uint8_t, int8_t, int32_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_resize_bicubic) {
  Define(op, "images resized by cubic curves; float32").Kernel(kImages, Bicubic);
  op.Attr("half_pixel_centers", false).InferShape(ResizeShape<DType::kF32, false>);
}
HEDDLE_OP(tf_resize_bicubic_grad) {
  DefineGrad(op, "gradient of tf_resize_bicubic").Kernels<BicubicGrad, float, double>();
}
HEDDLE_OP(tf_resize_area) {
  Define(op, "images resized by the mean of what a pixel covers; float32").Kernel(kImages, Area);
  op.InferShape(ResizeShape<DType::kF32, false>);
}

HEDDLE_EXAMPLES(tf_resize_bilinear, R"(
example recorded case 1
attr align_corners BOOLEAN false
attr half_pixel_centers BOOLEAN false
in images float32 [2, 2, 2, 1] 1.0048534 -1.5611156 -0.11350105 0.63613564 -0.19045168 1.3205141
  -0.24521609 -3.1263137
in size int32 [2] 11 5
out resized_images float32 [2, 11, 5, 1] 1.0048534 -0.021534204 -1.0479218 -1.5611156 -1.5611156
  0.8015162 0.01626359 -0.768989 -1.1616154 -1.1616154 0.598179 0.054061383 -0.49005628 -0.7621151
  -0.7621151 0.39484185 0.09185918 -0.21112353 -0.36261487 -0.36261487 0.19150466 0.12965697
  0.067809224 0.03688538 0.03688538 -0.011832476 0.16745476 0.34674203 0.43638563 0.43638563
  -0.11350105 0.18635365 0.48620835 0.63613564 0.63613564 -0.11350105 0.18635365 0.48620835
  0.63613564 0.63613564 -0.11350105 0.18635365 0.48620835 0.63613564 0.63613564 -0.11350105
  0.18635365 0.48620835 0.63613564 0.63613564 -0.11350105 0.18635365 0.48620835 0.63613564
  0.63613564 -0.19045168 0.41393465 1.018321 1.3205141 1.3205141 -0.20040885 0.0845547 0.36951828
  0.5119999 0.5119999 -0.21036601 -0.24482524 -0.27928448 -0.29651427 -0.29651427 -0.22032318
  -0.5742052 -0.92808723 -1.1050285 -1.1050285 -0.23028034 -0.90358514 -1.57689 -1.9135426
  -1.9135426 -0.2402375 -1.2329652 -2.2256927 -2.7220569 -2.7220569 -0.24521609 -1.3976551
  -2.5500941 -3.1263137 -3.1263137 -0.24521609 -1.3976551 -2.5500941 -3.1263137 -3.1263137
  -0.24521609 -1.3976551 -2.5500941 -3.1263137 -3.1263137 -0.24521609 -1.3976551 -2.5500941
  -3.1263137 -3.1263137 -0.24521609 -1.3976551 -2.5500941 -3.1263137 -3.1263137

example recorded case 2
attr align_corners BOOLEAN true
attr half_pixel_centers BOOLEAN false
in images float32 [2, 1, 2, 3] 1.2921416 -0.9048476 -0.8770284 3.6468499 2.4972234 -0.33127156
  1.5309855 -1.7937443 2.1462507 0.33780056 -2.2812746 1.9606555
in size int32 [2] 2 5
out resized_images float32 [2, 2, 5, 3] 1.2921416 -0.9048476 -0.8770284 1.8808186 -0.054329872
  -0.7405892 2.4694958 0.7961879 -0.60415 3.0581727 1.6467056 -0.4677108 3.6468499 2.4972234
  -0.33127156 1.2921416 -0.9048476 -0.8770284 1.8808186 -0.054329872 -0.7405892 2.4694958 0.7961879
  -0.60415 3.0581727 1.6467056 -0.4677108 3.6468499 2.4972234 -0.33127156 1.5309855 -1.7937443
  2.1462507 1.2326893 -1.9156269 2.0998518 0.93439305 -2.0375094 2.053453 0.63609684 -2.1593919
  2.0070543 0.33780056 -2.2812746 1.9606555 1.5309855 -1.7937443 2.1462507 1.2326893 -1.9156269
  2.0998518 0.93439305 -2.0375094 2.053453 0.63609684 -2.1593919 2.0070543 0.33780056 -2.2812746
  1.9606555

example recorded case 3
attr align_corners BOOLEAN false
attr half_pixel_centers BOOLEAN true
in images float64 [1, 6, 2, 1] -0.3251205305569786 -2.9842891809713796 0.7096910213068387
  -2.187344324887299 0.9275149231794136 -0.6256477825780052 -0.8396001907657173 -1.118859401249054
  -1.876893530715128 -0.7645218543835035 -0.5578179475306272 2.0991571917883296
in size int32 [2] 8 3
out resized_images float32 [1, 8, 3, 1] -0.32512054 -1.6547049 -2.9842892 0.3216367 -1.082281
  -2.4861987 0.791375 -0.40516657 -1.6017082 0.7066255 0.009663135 -0.68729925 -0.6187109
  -0.83795947 -1.057208 -1.4879086 -1.1926534 -0.8973984 -1.3822402 -0.5364412 0.30935776
  -0.55781794 0.7706696 2.099157

example recorded case 4
attr align_corners BOOLEAN true
in images float32 [2, 4, 3, 1] -1.1536618 0.45285144 -2.380209 1.3991874 0.98112434 -0.45359626
  0.635716 0.47764987 1.3802081 2.5943286 -1.5145621 0.43180266 1.3624231 0.2571979 -0.7355314
  0.09263391 0.99438435 -1.4835728 0.11400426 -0.5054977 0.7434553 -0.5549066 -1.3371849 -1.6375622
in size int32 [2] 2 6
out resized_images float32 [2, 2, 6, 1] -1.1536618 -0.51105654 0.13154876 -0.1137608 -1.246985
  -2.380209 2.5943286 0.9507724 -0.69278383 -1.1252891 -0.34674323 0.43180266 1.3624231 0.92033297
  0.47824287 0.058651984 -0.33843973 -0.7355314 -0.5549066 -0.86781794 -1.1807293 -1.3972604
  -1.5174112 -1.6375622
)")

HEDDLE_EXAMPLES(tf_resize_nearest_neighbor, R"(
example recorded case 1
attr align_corners BOOLEAN false
attr half_pixel_centers BOOLEAN true
in images uint8 [2, 4, 1, 1] 5 0 9 4 5 1 3 3
in size int32 [2] 5 3
out resized_images uint8 [2, 5, 3, 1] 5 5 5 0 0 0 9*6 4 4 4 5 5 5 1 1 1 3*9

example recorded case 2
attr align_corners BOOLEAN false
attr half_pixel_centers BOOLEAN false
in images float32 [2, 2, 2, 3] -0.14837901 0.72545004 -0.4778829 -2.8513494 -0.8795071 -1.0936921
  -0.80311245 0.4469887 -0.5426137 1.5685402 2.244106 -2.8073084 -2.4330847 -1.3251048 0.23310772
  3.2868514 0.7009187 -2.2893095 0.26964352 -0.9647518 0.8252222 -1.1659541 -1.4096805 2.7222414
in size int32 [2] 10 1
out resized_images float32 [2, 10, 1, 3] -0.14837901 0.72545004 -0.4778829 -0.14837901 0.72545004
  -0.4778829 -0.14837901 0.72545004 -0.4778829 -0.14837901 0.72545004 -0.4778829 -0.14837901
  0.72545004 -0.4778829 -0.80311245 0.4469887 -0.5426137 -0.80311245 0.4469887 -0.5426137
  -0.80311245 0.4469887 -0.5426137 -0.80311245 0.4469887 -0.5426137 -0.80311245 0.4469887 -0.5426137
  -2.4330847 -1.3251048 0.23310772 -2.4330847 -1.3251048 0.23310772 -2.4330847 -1.3251048 0.23310772
  -2.4330847 -1.3251048 0.23310772 -2.4330847 -1.3251048 0.23310772 0.26964352 -0.9647518 0.8252222
  0.26964352 -0.9647518 0.8252222 0.26964352 -0.9647518 0.8252222 0.26964352 -0.9647518 0.8252222
  0.26964352 -0.9647518 0.8252222

example recorded case 3
attr align_corners BOOLEAN true
attr half_pixel_centers BOOLEAN false
in images float32 [2, 5, 4, 1] -2.274895 -1.1148702 -0.7847426 -0.51718 -3.2206433 -1.0535434
  1.0095845 -0.10097359 -0.2336046 -1.6177099 -1.3513631 -0.5084097 1.6513033 -2.047765 -3.4007103
  0.7472685 -2.5489974 1.578068 -0.5466499 -1.2544968 1.2560666 2.2649004 -1.5423439 0.54327935
  2.3161461 0.09826449 -1.5898608 0.84896654 -0.513069 0.60913324 0.47482547 0.35743433 -0.31862882
  -0.26926413 -1.7803775 1.6133631 0.6602341 -0.92607045 -3.0734696 0.7532975
in size int32 [2] 6 3
out resized_images float32 [2, 6, 3, 1] -2.274895 -0.7847426 -0.51718 -3.2206433 1.0095845
  -0.10097359 -0.2336046 -1.3513631 -0.5084097 -0.2336046 -1.3513631 -0.5084097 1.6513033 -3.4007103
  0.7472685 -2.5489974 -0.5466499 -1.2544968 1.2560666 -1.5423439 0.54327935 2.3161461 -1.5898608
  0.84896654 -0.513069 0.47482547 0.35743433 -0.513069 0.47482547 0.35743433 -0.31862882 -1.7803775
  1.6133631 0.6602341 -3.0734696 0.7532975
)")

HEDDLE_EXAMPLES(tf_resize_nearest_neighbor_grad, R"(
example recorded case 1
attr align_corners BOOLEAN true
in grads float32 [1, 5, 7, 2] -2.7385237 -1.9375205 -1.3060919 -0.64219916 -1.0611141 -3.0579443
  3.0767472 1.3379161 -1.2918109 1.8269589 -0.6159755 -0.41784608 1.8456076 -0.46919435 1.1939261
  0.67964625 1.4773518 2.5461476 1.7158607 2.1017919 1.739896 -1.1252097 0.62725335 -1.4477619
  -1.9406098 -1.1988733 -1.9392312 3.4231205 -1.207372 0.07520659 -3.200702 -0.64386696 -0.16579825
  -1.5340072 1.2729613 0.062447686 -1.8352745 0.038225897 -2.2131457 -2.2045188 -1.1744186 0.3491668
  1.4714264 -0.21156266 -1.3212295 -0.8395364 -1.1935804 -1.1671576 -0.70061195 0.081271216
  0.62231016 -1.4154156 0.33609915 0.51175 -0.3396694 -1.1715915 0.7052637 0.7256326 -1.0912634
  0.5096041 -1.4825027 -1.0051329 -2.22033 0.5966909 1.3786654 1.2691851 1.4468955 -0.09631358
  -2.2868273 1.4584721
in size int32 [2] 3 4
out output float32 [1, 3, 4, 2] -2.7385237 -1.9375205 -2.367206 -3.7001433 1.7849363 3.164875
  1.2296321 -0.88704044 -0.013445854 0.75485283 -0.17328769 2.4700656 1.804836 -2.472298 -7.267405
  0.36889523 2.17669 0.5140699 -5.0885763 -2.502223 -0.9199662 0.5317315 -0.84350204 0.702317

example recorded case 2
attr align_corners BOOLEAN false
attr half_pixel_centers BOOLEAN false
in grads float32 [1, 5, 7, 2] -5.226238 1.7690021 0.3408423 -0.9723712 2.1865442 1.7553906
  -1.6897061 -0.64229274 -1.0793084 1.9008899 0.0455914 -0.25528973 -0.07975292 0.014560233
  2.6908648 0.50891346 2.715932 0.7811411 -0.8182536 -0.9218631 0.8507945 0.5790743 0.2473732 3.7639
  -1.419153 2.692885 -1.0675765 -1.2936773 -2.3893435 0.41613096 -0.2559299 -0.5552462 2.147915
  -0.08797657 0.366163 1.7250524 -0.7241521 1.3510797 -1.2300379 0.7679176 -1.9121264 -2.3787026
  -2.1375587 1.3398628 0.48783374 -1.5164403 0.09883874 -0.19207795 0.3970817 -1.201123 3.5136197
  0.68899286 -0.82453233 -0.13583358 -1.6062466 -1.3376431 1.537326 2.466355 -0.6066384 -0.9519713
  -0.8229407 -3.153222 0.31634775 1.1488383 1.384682 -0.19244178 -0.6503168 0.4400152 0.9511286
  0.98093235
in size int32 [2] 3 4
out output float32 [1, 3, 4, 2] 0.52140117 2.0866854 0.529379 0.77030915 -2.2054968 8.102385
  -1.1473294 -1.2791171 -4.294998 -0.31569266 3.0099983 0.24387479 0.7348973 2.6721566 -3.518373
  -3.7163458 0.9306876 1.5143838 -0.506593 -2.0043838 0.7343653 0.24757342 0.9511286 0.98093235
)")

HEDDLE_EXAMPLES(tf_resize_bicubic, R"(
example recorded case 1
attr align_corners BOOLEAN true
in images float32 [1, 4, 2, 2] 0.1650122 -0.24678843 -1.3130941 2.034015 -4.44446 0.998651 1.8638611
  1.418796 -0.63840914 0.44592375 -0.5527148 0.7687245 -0.97415507 2.525222 -0.42845827 3.6667106
in size int32 [2] 7 6
out resized_images float32 [1, 7, 6, 2] 0.1650122 -0.24678843 -0.09542034 0.155074 -0.409134
  0.6391523 -0.738948 1.1480742 -1.0526615 1.6321524 -1.3130941 2.034015 -2.496541 0.42774945
  -1.9682288 0.66730195 -1.3318312 0.95586383 -0.6627723 1.259235 -0.026374593 1.547797 0.50193745
  1.7873495 -4.44446 0.998651 -3.3329754 1.0726777 -1.9940959 1.1618493 -0.58650297 1.2555975
  0.75237674 1.3447691 1.8638611 1.418796 -2.9420965 0.6441131 -2.257786 0.6653064 -1.4334747
  0.6908355 -0.56685823 0.7176748 0.25745323 0.743204 0.94176364 0.7643972 -0.63840914 0.44592375
  -0.6233103 0.50279915 -0.60512257 0.57131034 -0.58600134 0.6433378 -0.5678136 0.7118491 -0.5527148
  0.7687245 -0.44946483 1.4337547 -0.49662754 1.5611458 -0.5534391 1.7145995 -0.6131663 1.8759286
  -0.66997784 2.0293825 -0.7171405 2.1567736 -0.97415507 2.525222 -0.8780069 2.7263448 -0.7621881
  2.9686143 -0.6404252 3.223318 -0.5246064 3.4655879 -0.42845827 3.6667106

example recorded case 2
attr align_corners BOOLEAN false
attr half_pixel_centers BOOLEAN false
in images float32 [1, 3, 5, 2] -0.4689978 0.95135814 0.79336613 -0.42484158 -0.58689815 1.9605904
  1.855071 2.7444396 1.1484966 1.5871263 -0.28674394 -0.439931 0.61862665 -2.2419116 4.02435
  0.84894073 0.06979123 1.1460348 -0.14864643 -0.21141572 0.11076909 -0.73546445 0.9682036
  -2.2602615 -2.5205917 -2.3942053 1.3430117 -1.4596169 -0.4259182 2.4830673
in size int32 [2] 3 9
out resized_images float32 [1, 3, 9, 2] -0.4689978 0.95135814 0.38315043 -0.06825426 0.7293096
  -0.30236104 -0.35415828 1.0470244 -0.22064556 2.390463 1.4013665 2.7744517 1.9042099 2.4676027
  1.2337455 1.7001917 1.0757931 1.4680437 -0.28674394 -0.439931 -0.12787491 -1.7716452 1.0246667
  -2.0785155 3.4429986 -0.25598925 3.5887334 1.2590839 0.9758615 1.3133274 -0.4382943 0.75217843
  -0.16119504 -0.08393809 -0.17112273 -0.35109156 0.11076909 -0.73546445 0.95208883 -1.5794351
  0.6715032 -2.3808637 -1.8052212 -2.5405152 -2.0539854 -2.3360164 0.65314895 -2.0469942 1.2160392
  -0.11594869 -0.23108104 2.1276598 -0.6079335 2.8887527
)")

HEDDLE_EXAMPLES(tf_resize_area, R"(
example recorded case 1
attr align_corners BOOLEAN true
in images float32 [1, 8, 4, 2] 1.5042422 -0.98361933 0.009746662 -1.1147789 0.9925387 -1.6594781
  1.7654874 -0.45233446 1.3003012 -1.3766797 1.2831854 -0.629619 -1.9742293 -0.63478416 0.7446157
  -2.4139512 2.8047578 -2.1306496 0.6617805 -0.15371381 -2.1108356 0.26562512 2.806852 0.22190672
  2.2600386 -2.3306756 -0.8898492 1.3450193 0.36283737 0.22939426 -1.6508604 2.52506 0.7812083
  -0.91637266 -0.07653239 0.78985083 -0.5090834 1.9274418 1.0296701 0.5558634 1.2684041 -0.8953481
  0.3711079 -0.12736751 -1.3188807 -0.78010863 -1.0634862 -0.79414326 0.84857047 1.9164523
  0.13993637 2.0134063 1.6361289 -0.0038044732 -2.1976762 0.8569329 -2.7865028 0.2167568 -1.3179476
  -0.20369753 -2.0867407 -1.0188563 1.1768426 1.776243
in size int32 [2] 3 2
out resized_images float32 [1, 3, 2, 2] 0.508381 -0.837698 1.2832928 -0.39481398 0.38165456
  0.3377161 -0.87340647 0.5374809 -2.0637302 -0.3352657 1.1768426 1.776243

example recorded case 2
attr align_corners BOOLEAN false
in images float32 [1, 7, 5, 2] 0.3332451 -1.2105787 4.6896524 -0.9389484 -1.236195 2.4023035
  -1.5854146 -0.5455219 1.2698127 1.8638088 0.16628605 1.0896208 -0.7341205 -0.68155247 -1.8302109
  0.8744459 1.2736454 -3.1726346 -1.9721807 -0.9984605 0.8924996 -0.45840728 1.3367424 -5.054256
  0.14147362 2.8930407 -0.60330915 -1.5313472 0.30624813 -1.343745 0.22579505 0.8217426 4.126829
  -1.3960022 1.3606917 0.25553384 -2.487722 -2.143999 0.70674515 2.5090406 1.998964 1.2244047
  2.5332026 -0.6314414 -1.051285 1.2725726 -1.9068466 2.034846 -0.94369197 -1.5226047 2.5325618
  0.57650757 -1.1594908 -1.9164956 -1.57431 1.7552212 -0.034831084 2.3107536 -0.15691185 0.06342015
  1.2885324 -0.84635967 0.7769963 -0.3291236 2.544022 2.047991 -0.7630336 0.92339146 0.88916093
  1.2729541
in size int32 [2] 6 6
out resized_images float32 [1, 6, 6, 2] 0.3093938 -0.8819788 3.193741 -0.89813775 0.77329874
  0.9495519 -1.2634236 0.94209355 -0.78024817 -0.44567665 0.8066711 1.4549135 0.37377563 0.6473272
  -0.039201237 -1.4152513 -0.8171018 0.09835377 -0.46517453 -0.21076557 0.32565826 -2.382379
  -1.3212014 -1.0971134 0.60676914 0.09022835 2.147349 -2.7711008 1.4113952 -0.33696505 -0.16596836
  0.34004372 -1.0331541 -1.3736404 0.47788987 0.3074488 1.2390342 1.0518351 2.820755 -0.5569212
  1.2759259 0.118375055 -0.87286544 0.59958404 -1.771907 0.23617841 -0.23636176 0.20524356 2.380105
  0.7616211 0.39247316 -1.0871452 -0.8966984 0.35065806 -1.0828016 1.8631618 -0.5320956 1.7075924
  -0.38170636 -0.38973013 1.4662516 -0.6430929 0.6935343 -0.57333183 1.3735552 0.98134375 0.9098114
  1.652335 -0.37925962 1.1173021 0.7397221 1.1001638
)")

HEDDLE_EXAMPLES(tf_resize_bilinear_grad, R"(
example plain
in grads float32 [1, 2, 4, 1] 0.44 0.22 0.22 -0.56 0.90 -0.78 -0.87 0.37
in original_image float32 [1, 3, 2, 1] -0.81 -0.87 -0.08 0.30 0.78 0.44
out output float32 [1, 3, 2, 1] 0.55 -0.23000002 0.255 -0.44500002 0.255 -0.44500002

example half pixel centres
attr half_pixel_centers BOOLEAN true
in grads float32 [1, 4, 3, 1] -0.86 0.29 0.69 -0.76 0.51 -0.48 -0.40 -1.00 0.52 0.03 0.80 -0.07
in original_image float32 [1, 2, 2, 1] -0.69 -0.57 -0.47 0.89
out output float32 [1, 2, 2, 1] -1.3187501 0.67125 -0.37124988 0.28875002

example aligned corners
attr align_corners BOOLEAN true
in grads float32 [1, 4, 3, 1] -0.59 -0.82 -0.29 -0.84 -0.15 0.24 0.30 -0.65 -0.72 -0.02 0.37 -0.11
in original_image float64 [1, 2, 2, 1] 0.15 0.82 -0.71 -0.46
out output float64 [1, 2, 2, 1] -1.6183332316577435 -0.9383333213627338 -0.15666665136814117
  -0.5666666887700558
)")

HEDDLE_EXAMPLES(tf_resize_bicubic_grad, R"(
example plain
in grads float32 [1, 2, 4, 1] -0.01 0.07 0.80 0.11 0.32 -0.16 0.57 0.67
in original_image float32 [1, 3, 2, 1] -0.41 -0.78 -0.48 -0.28 0.78 -0.47
out output float32 [1, 3, 2, 1] -0.0019238256 0.8406739 0.105205074 0.7260449 0.088593744 0.61140627

example half pixel centres
attr half_pixel_centers BOOLEAN true
in grads float32 [1, 4, 3, 1] 0.26 0.28 0.91 -0.77 0.54 -0.33 -0.79 0.26 0.69 0.16 -0.90 0.94
in original_image float32 [1, 2, 2, 1] -0.23 0.27 0.45 -0.48
out output float32 [1, 2, 2, 1] -0.1575178 1.3069549 -1.1132098 1.2137727
)")

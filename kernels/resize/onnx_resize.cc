// Resizing of any axes: each axis has a list of source elements and weights for every position of
// the result, and the axes are done one after another. Sizes and positions are computed in float,
// as in ONNX Runtime: their rounding decides which element is taken.
#include <cmath>
#include <limits>
#include <memory_resource>
#include <type_traits>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

enum class ResizeMode { kNearest, kLinear, kCubic };

// The resizing of one axis.
struct ResizeAxis {
  int64_t in = 0, out = 0;
  float scale = 1;
  float roi_begin = 0, roi_end = 1;
  bool by_scale = false;  // interpolates by `scale`, whose length need not be whole
};

struct ResizeSpec {
  ShortList<ResizeAxis, Shape::kMaxRank> axes;  // one for each dimension of X
  Shape out;
};

// True when an optional operand is there. An empty tensor, which exporters write, counts as absent.
template <typename Context>
bool Given(const Context& ctx, Key key) {
  return Has(ctx, key) && ShapeIn(ctx, key).numel() > 0;
}

using ShortFloats = ShortList<float, size_t{2} * Shape::kMaxRank>;

template <typename Context>
Result<ShortFloats> NumbersIn(const Context& ctx, Key key) {
  const Tensor& t = *ValueIn(ctx, key);
  ShortFloats numbers;
  const bool known = VisitDType<float, double, float16, bfloat16>(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const auto part : Stretches(t.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        numbers.push_back(static_cast<float>(static_cast<ComputeType<T>>(t.data<T>()[i])));
  });
  if (!known) return InvalidArgument("input ", key.name, " is ", Name(t.dtype()));
  return numbers;
}

// The sizes that keep the ratio of the axes, and the scale that makes them.
Status KeepRatio(const std::string& policy, const Shape& x, const ShortInts& axes, ShortInts* sizes,
                 float* scale) {
  const bool smaller = policy == "not_larger";
  if (!smaller && policy != "not_smaller")
    return InvalidArgument("keep_aspect_ratio_policy is '", policy,
                           "', expected stretch, not_larger or not_smaller");
  *scale = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const float n = static_cast<float>(x[static_cast<int>(axes[i])]);
    const float s = static_cast<float>((*sizes)[i]) / n;
    if (i == 0 || (smaller ? s < *scale : s > *scale)) *scale = s;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const float size = std::round(static_cast<float>(x[static_cast<int>(axes[i])]) * *scale);
    if (!(size >= 0 && size < 1e15f))
      return InvalidArgument("sizes gives axis ", axes[i], " of X ", x.ToString(), " the size ",
                             size);
    (*sizes)[i] = static_cast<int64_t>(size);
  }
  return Status::Ok();
}

template <typename Context>
Result<ResizeSpec> ResizeSpecOf(const Context& ctx) {
  const Shape& x = ShapeIn(ctx, "X");
  ShortInts axes = ctx.IntList("axes");
  if (axes.empty()) axes = FirstInts(x.rank());
  HEDDLE_ASSIGN_OR_RETURN(axes, NormalAxes(axes, x.rank(), "axes"));
  ResizeSpec spec;
  for (const int64_t d : x) spec.axes.push_back({.in = d, .out = d});
  const bool by_scale = Given(ctx, "scales"), by_size = Given(ctx, "sizes");
  if (by_scale == by_size)
    return InvalidArgument("needs scales or sizes, got ", by_scale ? "both" : "neither");
  if (by_scale) {
    HEDDLE_ASSIGN_OR_RETURN(const ShortFloats scales, NumbersIn(ctx, "scales"));
    if (scales.size() != axes.size())
      return InvalidArgument("scales has ", scales.size(), " elements, expected ", axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      ResizeAxis& a = spec.axes[static_cast<size_t>(axes[i])];
      const float out = static_cast<float>(a.in) * scales[i];
      if (!(scales[i] > 0) || out > 1e15f)
        return InvalidArgument("scales holds ", scales[i], ", expected positive numbers");
      a.scale = scales[i];
      a.out = static_cast<int64_t>(out);
      a.by_scale = ctx.Str("mode") != "nearest";
    }
  } else {
    HEDDLE_ASSIGN_OR_RETURN(ShortInts sizes, IntsIn(ctx, "sizes"));
    if (sizes.size() != axes.size())
      return InvalidArgument("sizes has ", sizes.size(), " elements, expected ", axes.size());
    float common = 0;
    const std::string& policy = ctx.Str("keep_aspect_ratio_policy");
    if (policy != "stretch") HEDDLE_RETURN_IF_ERROR(KeepRatio(policy, x, axes, &sizes, &common));
    for (size_t i = 0; i < axes.size(); ++i) {
      ResizeAxis& a = spec.axes[static_cast<size_t>(axes[i])];
      a.out = sizes[i];
      a.scale = common != 0 ? common : static_cast<float>(a.out) / static_cast<float>(a.in);
    }
  }
  if (ctx.Str("coordinate_transformation_mode") == "tf_crop_and_resize") {
    if (!Given(ctx, "roi")) return InvalidArgument("tf_crop_and_resize needs roi");
    HEDDLE_ASSIGN_OR_RETURN(const ShortFloats roi, NumbersIn(ctx, "roi"));
    if (roi.size() != 2 * axes.size())
      return InvalidArgument("roi has ", roi.size(), " elements, expected ", 2 * axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      spec.axes[static_cast<size_t>(axes[i])].roi_begin = roi[i];
      spec.axes[static_cast<size_t>(axes[i])].roi_end = roi[i + axes.size()];
    }
  }
  ShortInts dims;
  for (const ResizeAxis& a : spec.axes) dims.push_back(a.out);
  HEDDLE_ASSIGN_OR_RETURN(spec.out, MakeShape(dims, "the result"));
  for (int i = 0; i < x.rank(); ++i)
    if (x[i] == 0 && spec.out[i] != 0)
      return InvalidArgument("cannot resize the empty axis ", i, " of X ", x.ToString());
  return spec;
}

Status OnnxResizeShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.is_static()) return SameRank(ctx, "X", "Y");
  for (const Key& key : {Key("roi"), Key("scales"), Key("sizes")})
    if (ctx.HasIn(key) && !(ctx.InShape(key).is_static() && ctx.InShape(key).numel() == 0) &&
        ctx.InValue(key) == nullptr)
      return SameRank(ctx, "X", "Y");
  HEDDLE_ASSIGN_OR_RETURN(const ResizeSpec spec, ResizeSpecOf(ctx));
  ctx.SetOut("Y", spec.out, ctx.InDType("X"));
  return Status::Ok();
}

// The position in the source of position o of the result.
Result<float> SourceOf(const std::string& mode, const ResizeAxis& a, int64_t o) {
  const auto n = static_cast<float>(a.in), m = static_cast<float>(a.out);
  const auto at = static_cast<float>(o);
  const float middle = (at + 0.5f) / a.scale, half = middle - 0.5f;
  if (mode == "half_pixel") return half;
  if (mode == "tf_half_pixel_for_nn") return middle;
  if (mode == "pytorch_half_pixel") return a.out > 1 ? half : 0.f;
  if (mode == "half_pixel_symmetric") {  // the middle alone is computed in double
    const float offset = n / 2 * (1 - m / (a.scale * n));
    return static_cast<float>(offset + (static_cast<double>(at) + 0.5) / a.scale - 0.5);
  }
  if (mode == "asymmetric") return at / a.scale;
  if (mode == "align_corners") {
    const float length = a.by_scale ? a.scale * n : m;
    return length == 1 ? 0.f : at * (n - 1) / (length - 1);
  }
  if (mode == "tf_crop_and_resize") {
    if (a.out <= 1) return 0.5f * (a.roi_begin + a.roi_end) * (n - 1);
    // Rounded before the sum: the compiler must not join the two.
    const auto begin = static_cast<float>(double{a.roi_begin} * (n - 1));
    return begin + at * (a.roi_end - a.roi_begin) * (n - 1) / (m - 1);
  }
  return InvalidArgument("coordinate_transformation_mode is '", mode, "', which is none");
}

Result<int64_t> NearestOf(const std::string& mode, float x, float scale) {
  if (mode == "ceil_when_shrinking")  // the rule before there was a choice
    return static_cast<int64_t>(scale < 1 ? std::ceil(x) : std::floor(x));
  if (const bool up = mode == "round_prefer_ceil"; up || mode == "round_prefer_floor") {
    // A position this near to the middle counts as the middle, as in ONNX Runtime.
    constexpr float kNear = 1e-6f;
    const float cut = std::trunc(x);
    if (std::fabs(x - (cut + 0.5f)) < kNear) return static_cast<int64_t>(cut) + (up ? 1 : 0);
    return static_cast<int64_t>(std::round(x));
  }
  if (mode == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  return InvalidArgument("nearest_mode is '", mode, "', which is none");
}

// The weight of a source element at a distance, of a kernel that is `a` steep.
double WeightAt(ResizeMode mode, double distance, double a) {
  const double x = std::fabs(distance);
  if (mode == ResizeMode::kLinear) return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// For every position the sources that count and their weights, `width` of each.
struct AxisTaps {
  explicit AxisTaps(std::pmr::memory_resource* heap) : source(heap), weight(heap), outside(heap) {}

  bool resizes = false;  // else the axis stays as it is, and the lists are empty
  int64_t width = 1;
  std::pmr::vector<int64_t> source;
  std::pmr::vector<double> weight;
  std::pmr::vector<char> outside;  // the position takes the extrapolation's value
};
using AllTaps = std::pmr::vector<AxisTaps>;  // one for each axis

Status FindTaps(const OpContext& ctx, ResizeMode mode, const ResizeAxis& a, AxisTaps* to) {
  AxisTaps& taps = *to;
  taps.resizes = true;
  const std::string& transformation = ctx.Str("coordinate_transformation_mode");
  const bool crop = transformation == "tf_crop_and_resize";
  const bool exclude = ctx.Int("exclude_outside") != 0;
  const double steep = ctx.Float("cubic_coeff_a");
  // A kernel that is wider by what the axis shrinks.
  const double squeeze = ctx.Int("antialias") != 0 ? std::min(1.0, double{a.scale}) : 1.0;
  const double reach = (mode == ResizeMode::kCubic ? 2 : 1) / squeeze;
  if (mode != ResizeMode::kNearest) taps.width = 2 * static_cast<int64_t>(std::ceil(reach)) + 1;
  taps.source.reserve(static_cast<size_t>(a.out * taps.width));
  taps.weight.reserve(static_cast<size_t>(a.out * taps.width));
  taps.outside.reserve(static_cast<size_t>(a.out));
  for (const int64_t o : Watched(a.out)) {
    HEDDLE_ASSIGN_OR_RETURN(const float x, SourceOf(transformation, a, o));
    taps.outside.push_back(crop && (x < 0 || x > static_cast<float>(a.in - 1)));
    if (!(std::fabs(x) < 1e15f)) return InvalidArgument("position ", o, " comes from ", x);
    if (mode == ResizeMode::kNearest) {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t at, NearestOf(ctx.Str("nearest_mode"), x, a.scale));
      taps.source.push_back(std::clamp<int64_t>(at, 0, a.in - 1));
      taps.weight.push_back(1);
      continue;
    }
    const auto first = static_cast<int64_t>(std::floor(x)) - taps.width / 2;
    double sum = 0;
    for (int64_t j = first; j < first + taps.width; ++j) {
      double w = WeightAt(mode, (static_cast<double>(j) - double{x}) * squeeze, steep);
      if (exclude && (j < 0 || j >= a.in)) w = 0;
      taps.source.push_back(std::clamp<int64_t>(j, 0, a.in - 1));
      taps.weight.push_back(w);
      sum += w;
    }
    if (exclude || squeeze < 1)
      for (int64_t j = 0; j < taps.width; ++j)
        taps.weight[static_cast<size_t>(o * taps.width + j)] /= sum;
  }
  return Status::Ok();
}

// One axis of [outer, n, inner] resized.
template <typename From>
void ResizeOne(const KernelContext& ctx, const From* from, const AxisTaps& taps, int64_t outer,
               int64_t n, int64_t m, int64_t inner, double* to) {
  ctx.ParallelFor(outer * m, 1 + 4096 / (1 + inner * taps.width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double* row = to + i * inner;
      WatchedFill(row, inner, 0.0);
      for (int64_t t = i % m * taps.width; t < (i % m + 1) * taps.width; ++t) {
        const double w = taps.weight[static_cast<size_t>(t)];
        if (w == 0) continue;
        const From* source = from + (i / m * n + taps.source[static_cast<size_t>(t)]) * inner;
        for (int64_t k = 0; k < inner; ++k) row[k] += w * static_cast<double>(source[k]);
      }
    }
  });
}

// A result as an element of the output. As in ONNX Runtime, an integer is the nearest one in range
// with antialias, and else the whole part of a float.
template <typename T>
T ResizedTo(double value, bool antialias) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (antialias)
      return ConvertTo<T>(std::clamp(std::round(value), static_cast<double>(Limits::min()),
                                     static_cast<double>(Limits::max())));
    return ConvertTo<T>(static_cast<float>(value));
  } else {
    return ConvertTo<T>(value);
  }
}

template <typename T>
void Interpolate(const KernelContext& ctx, const Tensor& x, const ResizeSpec& spec,
                 const AllTaps& taps, std::pmr::memory_resource* heap, T* to) {
  std::pmr::vector<double> values(heap), next(heap);
  Shape shape = x.shape();
  int64_t most = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    shape[axis] = spec.out[axis];
    if (taps[static_cast<size_t>(axis)].resizes) most = std::max(most, shape.numel());
  }
  values.reserve(static_cast<size_t>(most));
  next.reserve(static_cast<size_t>(most));
  shape = x.shape();
  bool first = true;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const AxisTaps& t = taps[static_cast<size_t>(axis)];
    if (!t.resizes) continue;
    const int64_t n = shape[axis], m = spec.out[axis];
    const int64_t outer = shape.Product(0, axis), inner = shape.Product(axis + 1, shape.rank());
    next.resize(static_cast<size_t>(outer * m * inner));
    if (first)
      ResizeOne(ctx, x.data<T>(), t, outer, n, m, inner, next.data());
    else
      ResizeOne(ctx, values.data(), t, outer, n, m, inner, next.data());
    first = false;
    values.swap(next);
    shape[axis] = m;
  }
  const bool antialias = ctx.Int("antialias") != 0;
  for (const auto some : Stretches(spec.out.numel()))
    for (int64_t i = some.begin; i < some.end; ++i)
      to[i] = first ? x.data<T>()[i] : ResizedTo<T>(values[static_cast<size_t>(i)], antialias);
}

// Bytes of one element each, from the nearest source.
void PickNearest(const Tensor& x, const ResizeSpec& spec, const AllTaps& taps, Tensor* out) {
  const auto strides = RowMajorStrides(x.shape());
  const int last = x.rank() - 1;
  VisitElementSize(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(x.raw());
    T* to = static_cast<T*>(out->mutable_raw());
    const int64_t cols = spec.out[last], rows = cols == 0 ? 0 : spec.out.numel() / cols;
    const auto source = [&](int axis, int64_t o) {
      const AxisTaps& t = taps[static_cast<size_t>(axis)];
      return t.resizes ? t.source[static_cast<size_t>(o)] : o;
    };
    for (const int64_t row : Watched(rows)) {
      int64_t rest = row, at = 0;
      for (int i = last - 1; i >= 0; --i) {
        at += source(i, rest % spec.out[i]) * strides[i];
        rest /= spec.out[i];
      }
      for (int64_t c = 0; c < cols; ++c) to[row * cols + c] = from[at + source(last, c)];
    }
  });
}

// The extrapolation's value where some axis lies outside the source.
template <typename T>
void Extrapolate(const ResizeSpec& spec, const AllTaps& taps, double value, T* to) {
  Walk<1> walk(spec.out, {Walk<1>::Strides{}});
  for (const auto some : Stretches(spec.out.numel()))
    for (int64_t i = some.begin; i < some.end; ++i, walk.Next())
      for (int axis = 0; axis < spec.out.rank(); ++axis) {
        const AxisTaps& t = taps[static_cast<size_t>(axis)];
        if (!t.resizes || t.outside[static_cast<size_t>(walk.index(axis))] == 0) continue;
        to[i] = ConvertTo<T>(value);
        break;
      }
}

Result<ResizeMode> ResizeModeOf(const std::string& name) {
  if (name == "nearest") return ResizeMode::kNearest;
  if (name == "linear" || name == "bilinear") return ResizeMode::kLinear;
  if (name == "cubic") return ResizeMode::kCubic;
  return InvalidArgument("mode is '", name, "', expected nearest, linear or cubic");
}

Status OnnxResize(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Y");
  HEDDLE_ASSIGN_OR_RETURN(const ResizeSpec spec, ResizeSpecOf(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const ResizeMode mode, ResizeModeOf(ctx.Str("mode")));
  const bool crop = ctx.Str("coordinate_transformation_mode") == "tf_crop_and_resize";
  if (out.numel() == 0) return Status::Ok();
  CallHeap heap(ctx);
  AllTaps taps(&heap);
  taps.reserve(spec.axes.size());
  for (size_t i = 0; i < spec.axes.size(); ++i) taps.emplace_back(&heap);
  for (size_t i = 0; i < taps.size(); ++i) {
    const ResizeAxis& a = spec.axes[i];
    // Unless it interpolates linearly, an axis of scale 1 stays whatever the region is. All of X
    // stays where no size changes.
    const bool cut = crop && (a.roi_begin != 0 || a.roi_end != 1) && mode == ResizeMode::kLinear;
    if ((a.scale == 1 && !cut) || spec.out == x.shape()) continue;
    if (ctx.Int("antialias") != 0 && a.in == a.out) continue;
    HEDDLE_RETURN_IF_ERROR(FindTaps(ctx, mode, a, &taps[i]));
  }
  if (mode == ResizeMode::kNearest) {
    if (x.rank() == 0)
      CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
    else
      PickNearest(x, spec, taps, &out);
  }
  const bool known =
      VisitDType<float, double, float16, bfloat16, int8_t, uint8_t, int16_t, int32_t, int64_t>(
          x.dtype(), [&](auto tag) {
            using T = typename decltype(tag)::type;
            T* to = out.mutable_data<T>();
            if (mode != ResizeMode::kNearest) Interpolate<T>(ctx, x, spec, taps, &heap, to);
            if (crop) Extrapolate<T>(spec, taps, ctx.Float("extrapolation_value"), to);
          });
  if (known || (mode == ResizeMode::kNearest && !crop)) return Status::Ok();
  return Unimplemented("no interpolation of ", Name(x.dtype()));
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_resize) {
  op.Doc("X resized along any axes, by scales or to sizes, from nearest, linear or cubic sources");
  op.Input("X").Input("roi", kOptional | kShapeValue).Input("scales", kOptional | kShapeValue);
  op.Input("sizes", kOptional | kShapeValue).Output("Y");
  op.Attr("mode", "nearest").Attr("coordinate_transformation_mode", "half_pixel");
  op.Attr("nearest_mode", "round_prefer_floor").Attr("cubic_coeff_a", -0.75);
  op.Attr("exclude_outside", 0).Attr("extrapolation_value", 0.0).Attr("antialias", 0);
  op.Attr("axes", Ints{}).Attr("keep_aspect_ratio_policy", "stretch");
  op.InferShape(OnnxResizeShape).KernelKey("X").AnyKernel(OnnxResize);
}

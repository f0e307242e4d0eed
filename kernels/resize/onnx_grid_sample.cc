// Images sampled at the positions of a grid, and the grids of affine maps; any number of spatial
// dimensions.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/pool/windows.h"

namespace heddle {
namespace {

enum class SampleMode { kNearest, kLinear, kCubic };
enum class SamplePadding { kZeros, kBorder, kReflection };

Result<SampleMode> SampleModeOf(const std::string& name) {
  if (name == "nearest") return SampleMode::kNearest;
  if (name == "linear" || name == "bilinear") return SampleMode::kLinear;
  if (name == "cubic" || name == "bicubic") return SampleMode::kCubic;
  return InvalidArgument("mode is '", name, "', expected linear, nearest or cubic");
}
Result<SamplePadding> SamplePaddingOf(const std::string& name) {
  if (name == "zeros") return SamplePadding::kZeros;
  if (name == "border") return SamplePadding::kBorder;
  if (name == "reflection") return SamplePadding::kReflection;
  return InvalidArgument("padding_mode is '", name, "', expected zeros, border or reflection");
}

Status OnnxGridSampleShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X", "grid"})) return ctx.Defer();
  const Shape &x = ctx.InShape("X"), &grid = ctx.InShape("grid");
  HEDDLE_ASSIGN_OR_RETURN(const Shape in, SpatialOf(x, "X"));
  if (grid.rank() != x.rank() || grid[0] != x[0] || grid.dim(-1) != in.rank())
    return InvalidArgument("grid ", grid.ToString(), " does not fit X ", x.ToString());
  Shape out{x[0], x[1]};
  for (int i = 1; i < grid.rank() - 1; ++i) out.push_back(grid[i]);
  ctx.SetOut("Y", out, ctx.InDType("X"));
  return Status::Ok();
}

// Mirrors x at the borders of [low, high] until it lies between them.
double ReflectPlace(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  if (x >= low && x <= high) return x;
  const double away = x < low ? low - x : x - high;
  const double turns = std::trunc(away / range), rest = away - turns * range;
  const bool near_low = (std::fmod(turns, 2) == 0) == (x < low);
  return near_low ? low + rest : high - rest;
}

// The pixels that count along one axis.
struct AxisSamples {
  int n = 0;
  std::array<int64_t, 4> at{};
  std::array<double, 4> weight{};
};

class Sampler {
 public:
  Sampler(SampleMode mode, SamplePadding padding, bool align)
      : mode_(mode), padding_(padding), align_(align) {}

  AxisSamples Along(double normal, int64_t length) const {
    const auto n = static_cast<double>(length);
    const double low = align_ ? 0 : -0.5, high = align_ ? n - 1 : n - 0.5;
    double x = align_ ? (normal + 1) / 2 * (n - 1) : ((normal + 1) * n - 1) / 2;
    AxisSamples s;
    if (!(std::fabs(x) < 1e15)) x = padding_ == SamplePadding::kZeros ? -1e15 : 0;
    if (mode_ == SampleMode::kNearest) x = std::nearbyint(x);
    if (x < low || x > high) {
      // A cubic's sources are clamped one by one: those beside the border count all the same.
      if (padding_ == SamplePadding::kBorder && mode_ != SampleMode::kCubic)
        x = std::clamp(x, 0.0, n - 1);
      if (padding_ == SamplePadding::kReflection) x = ReflectPlace(x, low, high);
    }
    if (mode_ == SampleMode::kNearest) {
      Add(static_cast<int64_t>(x), 1, length, low, high, &s);
      return s;
    }
    const auto first = static_cast<int64_t>(std::floor(x));
    const double t = x - std::floor(x);
    if (mode_ == SampleMode::kLinear) {
      Add(first, 1 - t, length, low, high, &s);
      Add(first + 1, t, length, low, high, &s);
      return s;
    }
    for (int k = -1; k <= 2; ++k) Add(first + k, Cubic(std::fabs(t - k)), length, low, high, &s);
    return s;
  }

 private:
  static double Cubic(double x) {
    constexpr double a = -0.75;
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  }
  void Add(int64_t at, double weight, int64_t n, double low, double high, AxisSamples* s) const {
    if (at < 0 || at >= n) {
      if (padding_ == SamplePadding::kZeros) return;
      if (padding_ == SamplePadding::kReflection)
        at = static_cast<int64_t>(ReflectPlace(static_cast<double>(at), low, high));
      at = std::clamp<int64_t>(at, 0, n - 1);
    }
    s->at[static_cast<size_t>(s->n)] = at;
    s->weight[static_cast<size_t>(s->n++)] = weight;
  }

  SampleMode mode_;
  SamplePadding padding_;
  bool align_;
};

// The sum over all axes from `axis` on.
template <typename T>
double SampleSum(const T* x, const Shape& in, const AxisSamples* samples, int axis,
                 int64_t offset) {
  const AxisSamples& s = samples[axis];
  double sum = 0;
  for (int k = 0; k < s.n; ++k) {
    const auto i = static_cast<size_t>(k);
    const int64_t at = offset * in[axis] + s.at[i];
    sum += s.weight[i] * (axis + 1 == in.rank() ? static_cast<double>(x[at])
                                                : SampleSum(x, in, samples, axis + 1, at));
  }
  return sum;
}

template <typename T>
struct OnnxGridSample {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &grid = ctx.In("grid");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&grid}));
    HEDDLE_ASSIGN_OR_RETURN(const SampleMode mode, SampleModeOf(ctx.Str("mode")));
    HEDDLE_ASSIGN_OR_RETURN(const SamplePadding padding, SamplePaddingOf(ctx.Str("padding_mode")));
    HEDDLE_ASSIGN_OR_RETURN(const Shape in, SpatialOf(x.shape(), "X"));
    const Sampler sampler(mode, padding, ctx.Int("align_corners") != 0);
    const int rank = in.rank();
    const int64_t channels = x.dim(1), plane = in.numel();
    const int64_t points = grid.shape().Product(1, rank + 1);
    if (plane == 0 && points > 0 && x.dim(0) * channels > 0)
      return InvalidArgument("X ", x.shape().ToString(), " has no pixels to sample");
    const T *from = x.data<T>(), *where = grid.data<T>();
    T* to = ctx.Out("Y").template mutable_data<T>();
    ctx.ParallelFor(x.dim(0) * points, 256, [&](int64_t begin, int64_t end) {
      std::array<AxisSamples, Windows::kMaxRank> samples;
      for (int64_t i = begin; i < end; ++i) {
        // The grid names the last axis first.
        for (int axis = 0; axis < rank; ++axis)
          samples[static_cast<size_t>(axis)] =
              sampler.Along(static_cast<double>(where[i * rank + rank - 1 - axis]), in[axis]);
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t image = i / points * channels + c;
          to[image * points + i % points] =
              static_cast<T>(SampleSum(from + image * plane, in, samples.data(), 0, 0));
        }
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_grid_sample) {
  op.Doc("X sampled at the positions that grid holds; an image spans [-1, 1] along each axis");
  op.Input("X").Input("grid").Output("Y").Attr("mode", "linear").Attr("padding_mode", "zeros");
  op.Attr("align_corners", 0).InferShape(OnnxGridSampleShape);
  op.Kernels<OnnxGridSample, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

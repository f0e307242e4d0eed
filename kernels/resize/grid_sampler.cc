#include <algorithm>
#include <array>
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"

namespace heddle {
namespace {

enum class Padding { kZeros, kBorder, kReflection };

struct Options {
  bool nearest = false, corners = true;
  Padding padding = Padding::kZeros;
};

Result<Options> OptionsOf(const OpContext& ctx) {
  Options o;
  const std::string &mode = ctx.Str("mode"), &padding = ctx.Str("padding_mode");
  if (mode != "bilinear" && mode != "nearest")
    return InvalidArgument("mode is '", mode, "', expected bilinear or nearest");
  o.nearest = mode == "nearest";
  o.corners = ctx.Bool("align_corners");
  if (padding == "border")
    o.padding = Padding::kBorder;
  else if (padding == "reflection")
    o.padding = Padding::kReflection;
  else if (padding != "zeros")
    return InvalidArgument("padding_mode is '", padding, "', expected zeros, border or reflection");
  return o;
}

// Three spatial dimensions, depth 1 in two; coordinates of the grid are x first.
struct Sizes {
  int spatial = 2;
  int64_t batch, channels;
  std::array<int64_t, 3> in{1, 1, 1};
  int64_t pixels = 1;  // of the grid, per image
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
};

Result<Sizes> SizesOf(const Shape& x, const Shape& grid) {
  const int rank = x.rank();
  if ((rank != 4 && rank != 5) || grid.rank() != rank || grid.dim(-1) != rank - 2 ||
      grid[0] != x[0])
    return InvalidArgument("X ", x.ToString(), " and Grid ", grid.ToString(),
                           " do not go together");
  Sizes s{rank - 2, x[0], x[1]};
  for (int i = 0; i < s.spatial; ++i) s.in[3 - s.spatial + i] = x[2 + i];
  s.pixels = grid.Product(1, rank - 1);
  return s;
}

// One coordinate in the image, and how it moves when the grid's does.
template <typename T>
struct Position {
  T at, slope;
};

template <typename T>
void Reflect(T low, T range, Position<T>& p) {  // into [low, low + range]
  if (range <= T(0)) {
    p = {T(0), T(0)};
    return;
  }
  T x = p.at - low;
  if (x < T(0)) x = -x, p.slope = -p.slope;
  x -= std::floor(x / (2 * range)) * 2 * range;
  if (x > range) x = 2 * range - x, p.slope = -p.slope;
  p.at = x + low;
}

template <typename T>
Position<T> Locate(const Options& o, T grid, int64_t size) {
  const T last = static_cast<T>(size - 1);
  Position<T> p;
  if (o.corners)
    p = {(grid + T(1)) * T(0.5) * last, T(0.5) * last};
  else
    p = {((grid + T(1)) * static_cast<T>(size) - T(1)) * T(0.5), T(0.5) * static_cast<T>(size)};
  if (!(std::abs(p.at) < T(1e9))) p = {T(-1e9), T(0)};  // nothing is there; NaN too
  if (o.padding == Padding::kZeros) return p;
  if (o.padding == Padding::kReflection)
    o.corners ? Reflect(T(0), last, p) : Reflect(T(-0.5), static_cast<T>(size), p);
  if (p.at < T(0)) p = {T(0), T(0)};
  if (p.at > last) p = {last, T(0)};
  return p;
}

// The neighbours of one pixel (up to 8), their weights and the weights' slopes along x, y, z.
template <typename T>
struct Neighbours {
  int count = 0;
  std::array<int64_t, 8> at;
  std::array<T, 8> weight;
  std::array<std::array<T, 3>, 8> slope;
};

template <typename T>
Neighbours<T> NeighboursOf(const Options& o, const Sizes& s, const T* grid) {
  std::array<int64_t, 3> base{};
  std::array<T, 3> part{}, slope{};
  for (int i = 0; i < s.spatial; ++i) {
    const int dim = 2 - i;  // x is the last dimension
    const Position<T> p = Locate(o, grid[i], s.in[dim]);
    const T whole = o.nearest ? std::nearbyint(p.at) : std::floor(p.at);
    base[dim] = static_cast<int64_t>(whole);
    part[dim] = o.nearest ? T(0) : p.at - whole;
    slope[dim] = o.nearest ? T(0) : p.slope;
  }
  Neighbours<T> n;
  const int corners = o.nearest ? 1 : 1 << s.spatial;
  for (int c = 0; c < corners; ++c) {
    bool inside = true;
    int64_t at = 0;
    std::array<T, 3> w{T(1), T(1), T(1)}, d{};
    for (int dim = 3 - s.spatial; dim < 3; ++dim) {
      const bool high = (c >> (2 - dim) & 1) != 0;
      const int64_t i = base[dim] + (high ? 1 : 0);
      inside = inside && i >= 0 && i < s.in[dim];
      at = at * s.in[dim] + i;
      w[dim] = high ? part[dim] : T(1) - part[dim];
      d[dim] = high ? slope[dim] : -slope[dim];
    }
    if (!inside) continue;
    n.at[n.count] = at;
    n.weight[n.count] = w[0] * w[1] * w[2];
    n.slope[n.count] = {w[0] * w[1] * d[2], w[0] * d[1] * w[2], d[0] * w[1] * w[2]};
    ++n.count;
  }
  return n;
}

Status GridSamplerShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &grid = ctx.InShape("Grid");
  if (!x.known_rank() || !grid.known_rank()) return ctx.Defer();
  if (x.is_static() && grid.is_static()) HEDDLE_RETURN_IF_ERROR(SizesOf(x, grid).status());
  if (grid.rank() < 3 || x.rank() < 2)
    return InvalidArgument("X ", x.ToString(), " and Grid ", grid.ToString(),
                           " do not go together");
  Shape out{x[0], x[1]};
  for (int i = 1; i + 1 < grid.rank(); ++i) out.push_back(grid[i]);
  ctx.SetOut("Output", out, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct GridSampler {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Options o, OptionsOf(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const Sizes s, SizesOf(ctx.In("X").shape(), ctx.In("Grid").shape()));
    const T* x = ctx.In("X").data<T>();
    const T* grid = ctx.In("Grid").data<T>();
    T* out = ctx.Out("Output").mutable_data<T>();
    ctx.ParallelFor(s.batch * s.pixels, 1 + 16384 / (16 + 8 * s.channels),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const Neighbours<T> n = NeighboursOf(o, s, grid + i * s.spatial);
                        const int64_t image = i / s.pixels, p = i % s.pixels;
                        for (int64_t c = 0; c < s.channels; ++c) {
                          const int64_t plane = image * s.channels + c;
                          T sum(0);
                          for (int k = 0; k < n.count; ++k)
                            sum += x[plane * s.in_size() + n.at[k]] * n.weight[k];
                          out[plane * s.pixels + p] = sum;
                        }
                      }
                    });
    return Status::Ok();
  }
};

Status SamplerGradShape(ShapeContext& ctx) {
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", ctx.InShape("X"), ctx.InDType("X"));
  if (ctx.HasOut("Grid@GRAD")) ctx.SetOut("Grid@GRAD", ctx.InShape("Grid"), ctx.InDType("Grid"));
  return Status::Ok();
}

template <typename T>
struct GridSamplerGrad {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Options o, OptionsOf(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const Sizes s, SizesOf(ctx.In("X").shape(), ctx.In("Grid").shape()));
    const Tensor& grad = ctx.In("Output@GRAD");
    if (grad.numel() != s.batch * s.channels * s.pixels)
      return InvalidArgument("Output@GRAD has shape ", grad.shape().ToString(), ", Grid ",
                             ctx.In("Grid").shape().ToString());
    const T* x = ctx.In("X").data<T>();
    const T* grid = ctx.In("Grid").data<T>();
    const T* g = grad.data<T>();
    Tensor *dx_out = ctx.OutOpt("X@GRAD"), *dg_out = ctx.OutOpt("Grid@GRAD");
    T* dx = dx_out ? dx_out->mutable_data<T>() : nullptr;
    T* dg = dg_out ? dg_out->mutable_data<T>() : nullptr;
    if (dx) WatchedFill(dx, dx_out->numel(), T(0));
    ctx.ParallelFor(s.batch, 1, [&](int64_t begin, int64_t end) {
      for (const int64_t i : Watched(begin * s.pixels, end * s.pixels)) {
        const Neighbours<T> n = NeighboursOf(o, s, grid + i * s.spatial);
        const int64_t image = i / s.pixels, p = i % s.pixels;
        std::array<T, 3> sum{};
        for (int64_t c = 0; c < s.channels; ++c) {
          const int64_t plane = image * s.channels + c;
          const T d = g[plane * s.pixels + p];
          for (int k = 0; k < n.count; ++k) {
            const int64_t at = plane * s.in_size() + n.at[k];
            if (dx) dx[at] += d * n.weight[k];
            for (int a = 0; a < 3; ++a) sum[a] += d * x[at] * n.slope[k][a];
          }
        }
        if (dg) std::copy_n(sum.data(), s.spatial, dg + i * s.spatial);
      }
    });
    return Status::Ok();
  }
};

void Attrs(OpDef& op) {
  op.Attr("mode", "bilinear").Attr("padding_mode", "zeros").Attr("align_corners", true);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(grid_sampler) {
  op.Doc("samples X at the places that Grid names, in units where the image is [-1, 1]");
  op.Input("X").Input("Grid").Output("Output");
  Attrs(op);
  op.InferShape(GridSamplerShape).Kernels<GridSampler, float, double>();
}
HEDDLE_OP(grid_sampler_grad) {
  op.Input("X").Input("Grid").Input("Output@GRAD");
  op.Output("X@GRAD", kOptional).Output("Grid@GRAD", kOptional);
  Attrs(op);
  op.InferShape(SamplerGradShape).Kernels<GridSamplerGrad, float, double>();
}

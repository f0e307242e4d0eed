#include "kernels/resize/interp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/base/to_place.h"

namespace heddle {
namespace {

// Of an operator: whether its scale is one number that does not enter the ratio, and the number of
// resized dimensions, 0 for any. An argument at run time, so that operators share their loops.
struct Form {
  bool old_scale;
  int spatial;
};

// Sizes and scales as the operator's operands give them. A size of -1 is not known, a scale <= 0 is
// not given.
struct Target {
  std::array<int64_t, 3> size{1, 1, 1};
  std::array<float, 3> scale{-1, -1, -1};
};

// The tensor with three spatial dimensions.
struct Geometry {
  bool channels_last = false;
  int spatial = 2;
  int64_t batch = 0, channels = 0;
  std::array<int64_t, 3> in{1, 1, 1};
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
};

Result<Geometry> GeometryOf(const OpContext& ctx, const Shape& x, int spatial) {
  if (x.rank() < 3 || x.rank() > 5 || (spatial != 0 && x.rank() != spatial + 2))
    return InvalidArgument("X has shape ", x.ToString(), ", expected rank ",
                           spatial == 0 ? "3 to 5" : std::to_string(spatial + 2));
  Geometry g;
  const std::string& layout = ctx.Str("data_layout");
  g.channels_last = layout == "NHWC" || layout == "NDHWC" || layout == "NWC";
  g.spatial = x.rank() - 2;
  g.batch = x[0];
  g.channels = x[g.channels_last ? x.rank() - 1 : 1];
  for (int i = 0; i < g.spatial; ++i) g.in[3 - g.spatial + i] = x[i + (g.channels_last ? 1 : 2)];
  return g;
}

Shape OutShape(const Geometry& g, const std::array<int64_t, 3>& size) {
  Shape s{g.batch};
  if (!g.channels_last) s.push_back(g.channels);
  for (int i = 3 - g.spatial; i < 3; ++i) s.push_back(size[i]);
  if (g.channels_last) s.push_back(g.channels);
  return s;
}

// Numbers behind the scale operands, one per dimension or one for all; none: not given.
Status ScalesOf(const OpContext& ctx, bool old_scale, const Tensor* tensor, const Geometry& g,
                Target& t) {
  std::array<double, 3> own{};  // the first of those that stand in no attribute
  std::span<const double> values;
  int64_t count = 0;
  if (tensor) {
    if (tensor->dtype() != DType::kF32)
      return InvalidArgument("Scale is ", Name(tensor->dtype()), ", expected float32");
    count = tensor->numel();
    for (int64_t i = 0; i < std::min<int64_t>(count, 3); ++i) own[i] = tensor->data<float>()[i];
    values = own;
  } else if (old_scale) {
    own[0] = ctx.Float("scale");
    count = own[0] > 0;
    values = own;
  } else {
    values = ctx.Attr<Floats>("scale");
    count = static_cast<int64_t>(values.size());
  }
  if (count == 0) return Status::Ok();
  if (count != 1 && count < g.spatial)
    return InvalidArgument("scale has ", count, " numbers, expected 1 or ", g.spatial);
  for (int i = 0; i < g.spatial; ++i) {
    const double s = values[count == 1 ? 0 : static_cast<size_t>(i)];
    if (!(s > 0)) return InvalidArgument("scale holds ", s, ", expected more than 0");
    t.scale[3 - g.spatial + i] = static_cast<float>(s);
  }
  return Status::Ok();
}

// `value(key, i)` gives the operand's tensor; `has(key)` whether it is there. nullopt: not known
// yet.
template <typename Has, typename ValueFn>
Result<std::optional<Target>> TargetOf(const OpContext& ctx, bool old_scale, const Geometry& g,
                                       Has&& has, ValueFn&& value) {
  Target t;
  const int first = 3 - g.spatial;
  static constexpr std::array<Key, 3> kSizes{Key("out_d"), Key("out_h"), Key("out_w")};
  for (int i = first; i < 3; ++i) t.size[i] = ctx.Int(kSizes[i]);
  const int sizes = ctx.InCount("SizeTensor");
  if (sizes > 0 && has("SizeTensor")) {
    if (sizes != g.spatial)
      return InvalidArgument("SizeTensor names ", sizes, " tensors, expected ", g.spatial);
    for (int i = 0; i < sizes; ++i) {
      const Tensor* v = value("SizeTensor", i);
      if (!v) return std::optional<Target>();
      if (v->numel() != 1)
        return InvalidArgument("SizeTensor holds ", v->numel(), " numbers, expected 1");
      t.size[first + i] = IntAt(*v, 0);
    }
    return std::optional<Target>(t);
  }
  const Tensor* scale = nullptr;
  if (has("Scale") && !(scale = value("Scale", 0))) return std::optional<Target>();
  HEDDLE_RETURN_IF_ERROR(ScalesOf(ctx, old_scale, scale, g, t));
  for (int i = first; i < 3; ++i)
    if (t.scale[i] > 0)
      t.size[i] = g.in[i] < 0 ? -1 : ToPlace(static_cast<float>(g.in[i]) * t.scale[i]);
  if (has("OutSize")) {
    const Tensor* v = value("OutSize", 0);
    if (!v) return std::optional<Target>();
    if (v->numel() != g.spatial)
      return InvalidArgument("OutSize holds ", v->numel(), " numbers, expected ", g.spatial);
    for (int i = 0; i < g.spatial; ++i) t.size[first + i] = IntAt(*v, i);
  }
  return std::optional<Target>(t);
}

Status InferInterp(ShapeContext& ctx, Form form) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(ctx, x, form.spatial));
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<Target> target,
                          TargetOf(
                              ctx, form.old_scale, g, [&](Key key) { return ctx.HasIn(key); },
                              [&](Key key, int i) { return ctx.InValue(key, i); }));
  if (!target) return ctx.Defer();
  for (int i = 3 - g.spatial; i < 3; ++i) {
    const int64_t n = target->size[i];
    if (n == 0 || n < -1 || (n == -1 && x.is_static()))
      return InvalidArgument("the output would have ", n, " elements along a dimension");
    if (g.in[i] == 0) return InvalidArgument("X is empty: ", x.ToString());
  }
  ctx.SetOut("Out", OutShape(g, target->size), ctx.InDType("X"));
  return Status::Ok();
}
template <bool kOldScale, int kSpatial>
Status InterpShape(ShapeContext& ctx) {
  return InferInterp(ctx, {kOldScale, kSpatial});
}

// The type that values are blended in.
template <typename T>
using BlendType = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Source positions and weights of the outputs along one dimension.
template <int kTaps, typename W>
struct Taps {
  std::array<int64_t, kTaps> at;
  std::array<W, kTaps> weight;
};

template <InterpKind kKind>
constexpr int kTapsOf = kKind == InterpKind::kNearest  ? 1
                        : kKind == InterpKind::kLinear ? 2
                                                       : 4;

template <typename W>
std::array<W, 4> CubicWeights(W t) {
  constexpr W kA = W(-0.75);
  const auto near = [&](W x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [&](W x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

// The ratio is single precision, positions half-way between pixels are double: as in Paddle, whose
// results hang on it at the edges of pixels.
template <InterpKind kKind, typename W>
Taps<kTapsOf<kKind>, W> TapsAt(int64_t k, int64_t in, float ratio, bool corners, bool half_pixel) {
  const float pos = static_cast<float>(k);
  const double middle = static_cast<double>(ratio) * (static_cast<double>(k) + 0.5) - 0.5;
  Taps<kTapsOf<kKind>, W> t;
  if constexpr (kKind == InterpKind::kNearest) {
    const int64_t at =
        corners ? ToPlace(static_cast<double>(ratio * pos) + 0.5) : ToPlace(ratio * pos);
    t.at = {std::clamp<int64_t>(at, 0, in - 1)};
    t.weight = {W(1)};
  } else if constexpr (kKind == InterpKind::kLinear) {
    const float source = half_pixel ? std::max(static_cast<float>(middle), 0.f) : ratio * pos;
    const int64_t at =
        std::clamp<int64_t>(half_pixel ? ToPlace(middle) : ToPlace(source), 0, in - 1);
    const float d = source - static_cast<float>(at);
    t.at = {at, std::min(at + 1, in - 1)};
    t.weight = {static_cast<W>(1.f - d), static_cast<W>(d)};
  } else {
    const W source = corners ? static_cast<W>(ratio * pos) : static_cast<W>(middle);
    const W base = std::floor(source);
    t.weight = CubicWeights(source - base);
    for (int i = 0; i < 4; ++i) t.at[i] = std::clamp<int64_t>(ToPlace(base) - 1 + i, 0, in - 1);
  }
  return t;
}

// The taps of all three dimensions, in scratch memory.
template <InterpKind kKind, typename W>
struct Plan {
  using Tap = Taps<kTapsOf<kKind>, W>;
  Geometry g;
  std::array<int64_t, 3> out;
  Tensor hold;
  std::array<const Tap*, 3> taps;
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
};

template <InterpKind kKind, typename W>
Result<Plan<kKind, W>> MakePlan(const KernelContext& ctx, Form form, const Tensor& out) {
  using Tap = typename Plan<kKind, W>::Tap;
  Plan<kKind, W> plan;
  HEDDLE_ASSIGN_OR_RETURN(plan.g, GeometryOf(ctx, ctx.In("X").shape(), form.spatial));
  HEDDLE_ASSIGN_OR_RETURN(const Geometry o, GeometryOf(ctx, out.shape(), form.spatial));
  if (o.batch != plan.g.batch || o.channels != plan.g.channels || o.spatial != plan.g.spatial)
    return InvalidArgument("X has shape ", ctx.In("X").shape().ToString(), ", but the output's is ",
                           out.shape().ToString());
  plan.out = o.in;
  HEDDLE_ASSIGN_OR_RETURN(
      const std::optional<Target> target,
      TargetOf(
          ctx, form.old_scale, plan.g, [&](Key key) { return ctx.InOpt(key) != nullptr; },
          [&](Key key, int i) { return ctx.InOpt(key, i); }));
  if (!target) return InvalidArgument("an operand that gives the size holds nothing");
  const int64_t total = plan.out[0] + plan.out[1] + plan.out[2];
  plan.hold = ctx.Scratch(DType::kU8, {total * static_cast<int64_t>(sizeof(Tap))});
  Tap* at = reinterpret_cast<Tap*>(plan.hold.mutable_raw());
  const bool corners = ctx.Bool("align_corners");
  const bool half_pixel = !corners && ctx.Int("align_mode") == 0;
  for (int i = 0; i < 3; ++i) {
    const float in = static_cast<float>(plan.g.in[i]), n = static_cast<float>(plan.out[i]);
    float ratio = 0;
    if (plan.out[i] > 1) {
      const float scale = form.old_scale ? -1 : target->scale[i];
      ratio = corners ? (in - 1) / (n - 1) : scale > 0 ? 1 / scale : in / n;
    }
    plan.taps[i] = at;
    const bool unused = i < 3 - plan.g.spatial;
    for (int64_t k = 0; k < plan.out[i]; ++k)
      *at++ = TapsAt<kKind, W>(k, plan.g.in[i], ratio, corners && !unused, half_pixel && !unused);
  }
  return plan;
}

// One plane of channels-first data: rows are blended first, then resized along the last dimension.
template <InterpKind kKind, typename T, typename W>
void ResizePlane(const Plan<kKind, W>& p, const T* x, T* out, W* row) {
  constexpr int kTaps = kTapsOf<kKind>;
  const int64_t in_w = p.g.in[2], out_w = p.out[2];
  const int64_t* last = nullptr;
  for (const int64_t i : Watched(p.out[0] * p.out[1])) {
    T* const to = out + i * out_w;
    const auto& d = p.taps[0][i / p.out[1]];
    const auto& h = p.taps[1][i % p.out[1]];
    if constexpr (kKind == InterpKind::kNearest) {
      if (last && i % p.out[1] != 0 && *last == h.at[0]) {  // the same source row again
        std::memcpy(to, to - out_w, static_cast<size_t>(out_w) * sizeof(T));
        continue;
      }
      last = &h.at[0];
      const T* from = x + (d.at[0] * p.g.in[1] + h.at[0]) * in_w;
      for (int64_t k = 0; k < out_w; ++k) to[k] = from[p.taps[2][k].at[0]];
    } else {
      std::fill_n(row, in_w, W(0));
      for (int a = 0; a < kTaps; ++a) {
        if (d.weight[a] == 0) continue;
        for (int b = 0; b < kTaps; ++b) {
          const W w = d.weight[a] * h.weight[b];
          const T* line = x + (d.at[a] * p.g.in[1] + h.at[b]) * in_w;
          for (int64_t k = 0; k < in_w; ++k) row[k] += w * static_cast<W>(line[k]);
        }
      }
      for (int64_t k = 0; k < out_w; ++k) {
        const auto& t = p.taps[2][k];
        W sum = W(0);
        for (int a = 0; a < kTaps; ++a) sum += t.weight[a] * row[t.at[a]];
        to[k] = static_cast<T>(sum);
      }
    }
  }
}

// Calls fn(input position, weight) for what makes output position `i`.
template <InterpKind kKind, typename W, typename Fn>
void ForTaps(const Plan<kKind, W>& p, int64_t i, Fn&& fn) {
  constexpr int kTaps = kTapsOf<kKind>;
  const auto& w = p.taps[2][i % p.out[2]];
  const auto& h = p.taps[1][i / p.out[2] % p.out[1]];
  const auto& d = p.taps[0][i / (p.out[2] * p.out[1])];
  for (int a = 0; a < kTaps; ++a)
    for (int b = 0; b < kTaps; ++b)
      for (int c = 0; c < kTaps; ++c) {
        const W weight = d.weight[a] * h.weight[b] * w.weight[c];
        if (weight != 0) fn((d.at[a] * p.g.in[1] + h.at[b]) * p.g.in[2] + w.at[c], weight);
      }
}

// Images of small integers, linear: sums are cut, not rounded, to integers, so the last bit
// decides. This is Paddle's order of operations, each rounded to single precision by itself.
template <typename W>
uint8_t BlendBytes(const Plan<InterpKind::kLinear, W>& p, int64_t i, const uint8_t* x,
                   int64_t step) {
  const auto& w = p.taps[2][i % p.out[2]];
  const auto& h = p.taps[1][i / p.out[2] % p.out[1]];
  const auto& d = p.taps[0][i / (p.out[2] * p.out[1])];
  volatile float sum = 0, part = 0;
  for (int k = 0; k < 8; ++k) {
    if (p.g.spatial < 3 && (k & 4) != 0) break;
    const bool rows_first = p.g.spatial == 2;
    const int a = k >> 2, b = rows_first ? k & 1 : k >> 1 & 1, c = rows_first ? k >> 1 & 1 : k & 1;
    if (p.g.spatial == 1 && b == 1) continue;
    part = static_cast<float>(x[((d.at[a] * p.g.in[1] + h.at[b]) * p.g.in[2] + w.at[c]) * step]);
    if (p.g.spatial == 3) part = part * d.weight[a];
    if (p.g.spatial >= 2) part = part * h.weight[b];
    part = part * w.weight[c];
    sum = sum + part;
  }
  return static_cast<uint8_t>(sum);
}

template <typename W>
void ResizeBytes(const KernelContext& ctx, const Plan<InterpKind::kLinear, W>& p, const uint8_t* x,
                 uint8_t* out) {
  const int64_t n = p.g.channels, step = p.g.channels_last ? n : 1;
  ctx.ParallelFor(p.g.batch * n, 1 + 4096 / p.out_size(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / n * n, c = i % n;
      const int64_t in_at = image * p.g.in_size() + c * (p.g.channels_last ? 1 : p.g.in_size());
      const int64_t out_at = image * p.out_size() + c * (p.g.channels_last ? 1 : p.out_size());
      for (const int64_t k : Watched(p.out_size()))
        out[out_at + k * step] = BlendBytes(p, k, x + in_at, step);
    }
  });
}

template <InterpKind kKind, typename T, typename W>
void ResizePixels(const KernelContext& ctx, const Plan<kKind, W>& p, const T* x, T* out) {
  const int64_t n = p.g.channels;
  const bool direct = std::is_same_v<T, W>;
  ctx.ParallelFor(p.g.batch * p.out_size(), 1 + 32768 / n, [&](int64_t begin, int64_t end) {
    Tensor hold = direct ? Tensor() : ctx.Scratch(kDTypeOf<W>, {n});
    for (int64_t i = begin; i < end; ++i) {
      const T* image = x + i / p.out_size() * p.g.in_size() * n;
      T* to = out + i * n;
      if constexpr (kKind == InterpKind::kNearest) {
        ForTaps(p, i % p.out_size(), [&](int64_t at, W) {
          std::memcpy(to, image + at * n, static_cast<size_t>(n) * sizeof(T));
        });
      } else {
        W* sum = direct ? reinterpret_cast<W*>(to) : hold.mutable_data<W>();
        std::fill_n(sum, n, W(0));
        ForTaps(p, i % p.out_size(), [&](int64_t at, W weight) {
          const T* from = image + at * n;
          for (int64_t c = 0; c < n; ++c) sum[c] += weight * static_cast<W>(from[c]);
        });
        if (!direct)
          for (int64_t c = 0; c < n; ++c) to[c] = static_cast<T>(sum[c]);
      }
    }
  });
}

// Channels last, blended: first rows to one, then its pixels.
template <InterpKind kKind, typename W>
void ResizeRows(const KernelContext& ctx, const Plan<kKind, W>& p, const W* x, W* out) {
  constexpr int kTaps = kTapsOf<kKind>;
  const int64_t n = p.g.channels, line = p.g.in[2] * n, out_line = p.out[2] * n;
  const int64_t rows = p.out[0] * p.out[1];
  ctx.ParallelFor(p.g.batch * rows, 1 + 32768 / (line + out_line), [&](int64_t begin, int64_t end) {
    Tensor hold = ctx.Scratch(kDTypeOf<W>, {line});
    W* const row = hold.mutable_data<W>();
    for (int64_t i = begin; i < end; ++i) {
      const W* image = x + i / rows * p.g.in_size() * n;
      const auto& d = p.taps[0][i % rows / p.out[1]];
      const auto& h = p.taps[1][i % p.out[1]];
      std::fill_n(row, line, W(0));
      for (int a = 0; a < kTaps; ++a)
        for (int b = 0; b < kTaps; ++b) {
          const W w = d.weight[a] * h.weight[b];
          if (w == 0) continue;
          const W* from = image + (d.at[a] * p.g.in[1] + h.at[b]) * line;
          for (int64_t k = 0; k < line; ++k) row[k] += w * from[k];
        }
      W* to = out + i * out_line;
      for (int64_t k = 0; k < p.out[2]; ++k, to += n) {
        const auto& t = p.taps[2][k];
        std::array<const W*, kTaps> from;
        for (int a = 0; a < kTaps; ++a) from[a] = row + t.at[a] * n;
        for (int64_t c = 0; c < n; ++c) {
          W sum = t.weight[0] * from[0][c];
          for (int a = 1; a < kTaps; ++a) sum += t.weight[a] * from[a][c];
          to[c] = sum;
        }
      }
    }
  });
}

template <InterpKind kKind, typename T>
Status Resize(KernelContext& ctx, Form form) {
  Tensor& out = ctx.Out("Out");
  if (out.numel() == 0) return Status::Ok();
  using W = BlendType<T>;
  const auto made = MakePlan<kKind, W>(ctx, form, out);
  HEDDLE_RETURN_IF_ERROR(made.status());
  const Plan<kKind, W>& p = *made;
  const T* x = ctx.In("X").data<T>();
  T* to = out.mutable_data<T>();
  if constexpr (kKind == InterpKind::kLinear && std::is_same_v<T, uint8_t>) {
    ResizeBytes(ctx, p, x, to);
    return Status::Ok();
  }
  if (p.g.channels_last) {
    if constexpr (kKind != InterpKind::kNearest && std::is_same_v<T, W>) {
      if (p.g.in[2] <= 2 * p.out[2]) {  // else most of a blended row would go unused
        ResizeRows(ctx, p, x, to);
        return Status::Ok();
      }
    }
    ResizePixels(ctx, p, x, to);
    return Status::Ok();
  }
  const int64_t planes = p.g.batch * p.g.channels;
  ctx.ParallelFor(planes, 1 + 32768 / p.out_size(), [&](int64_t begin, int64_t end) {
    Tensor row = ctx.Scratch(kDTypeOf<W>, {p.g.in[2]});
    for (int64_t i = begin; i < end; ++i)
      ResizePlane(p, x + i * p.g.in_size(), to + i * p.out_size(), row.mutable_data<W>());
  });
  return Status::Ok();
}

// Adds the gradient of each output pixel to the pixels that it was made of.
template <InterpKind kKind, typename T, typename W>
void AddTaps(const KernelContext& ctx, const Plan<kKind, W>& p, const T* from, W* out) {
  const int64_t step = p.g.channels_last ? p.g.channels : 1;
  ctx.ParallelFor(
      p.g.batch * p.g.channels, 1 + 8192 / p.out_size(), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t n = i / p.g.channels, c = i % p.g.channels;
          const T* g =
              from + n * p.out_size() * p.g.channels + c * (p.g.channels_last ? 1 : p.out_size());
          W* x =
              out + n * p.g.in_size() * p.g.channels + c * (p.g.channels_last ? 1 : p.g.in_size());
          for (const int64_t k : Watched(p.out_size()))
            ForTaps(p, k, [&](int64_t at, W weight) {
              x[at * step] += static_cast<W>(g[k * step]) * weight;
            });
        }
      });
}

// 16-bit gradients are added up in single precision.
template <InterpKind kKind, typename T>
Status ResizeGrad(KernelContext& ctx, Form form) {
  using W = ComputeType<T>;
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& to = ctx.Out("X@GRAD");
  Tensor sums = std::is_same_v<T, W> ? to : ctx.Scratch(kDTypeOf<W>, to.shape());
  WatchedFill(sums.mutable_data<W>(), to.numel(), W(0));
  if (grad.numel() > 0 && to.numel() > 0) {
    const auto made = MakePlan<kKind, W>(ctx, form, grad);
    HEDDLE_RETURN_IF_ERROR(made.status());
    AddTaps(ctx, *made, grad.data<T>(), sums.mutable_data<W>());
  }
  if constexpr (!std::is_same_v<T, W>)
    std::transform(sums.data<W>(), sums.data<W>() + to.numel(), to.mutable_data<T>(),
                   [](W sum) { return static_cast<T>(sum); });
  return Status::Ok();
}

template <InterpKind kKind, bool kOldScale, int kSpatial>
struct Interp {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) { return Resize<kKind, T>(ctx, {kOldScale, kSpatial}); }
  };
  template <typename T>
  struct GradKernel {
    static Status Run(KernelContext& ctx) {
      return ResizeGrad<kKind, T>(ctx, {kOldScale, kSpatial});
    }
  };
};

Status InterpGradShape(ShapeContext& ctx) {
  ctx.SetOut("X@GRAD", ctx.InShape("X"), ctx.InDType("X"));
  return Status::Ok();
}

void Operands(OpDef& op, bool old_scale, unsigned value_flag, unsigned x_flag) {
  op.Input("X", x_flag).Input("OutSize", kOptional | value_flag);
  op.Input("SizeTensor", kOptional | kList | value_flag).Input("Scale", kOptional | value_flag);
  op.Attr("data_layout", "NCHW").Attr("out_d", 0).Attr("out_h", 0).Attr("out_w", 0);
  op.Attr("align_corners", true).Attr("align_mode", 1);
  if (old_scale)
    op.Attr("scale", 0.0);
  else
    op.Attr("scale", Floats{});
}

}  // namespace

template <InterpKind kKind, bool kOldScale, int kSpatial>
void DefineInterp(OpDef& op) {
  Operands(op, kOldScale, kShapeValue, 0);
  op.Traits(kChannelsLast).Output("Out").InferShape(InterpShape<kOldScale, kSpatial>);
  using Op = Interp<kKind, kOldScale, kSpatial>;
  if constexpr (kKind == InterpKind::kNearest)
    op.Kernels<Op::template Kernel, float, double, int32_t, int64_t, uint8_t>();
  else
    op.Kernels<Op::template Kernel, float, double, uint8_t>();
  if constexpr (!kOldScale) op.Kernels<Op::template Kernel, float16, bfloat16>();
  op.KernelKey("X");
}
template <InterpKind kKind, bool kOldScale, int kSpatial>
void DefineInterpGrad(OpDef& op) {
  Operands(op, kOldScale, 0, kNoBuffer);
  op.Input("Out@GRAD").Output("X@GRAD").InferShape(InterpGradShape);
  using Op = Interp<kKind, kOldScale, kSpatial>;
  op.Kernels<Op::template GradKernel, float, double>().KernelKey("Out@GRAD");
  if constexpr (!kOldScale) op.Kernels<Op::template GradKernel, float16, bfloat16>();
}

#define HEDDLE_INTERP(kind, spatial)                                       \
  template void DefineInterp<InterpKind::kind, true, spatial>(OpDef&);     \
  template void DefineInterp<InterpKind::kind, false, spatial>(OpDef&);    \
  template void DefineInterpGrad<InterpKind::kind, true, spatial>(OpDef&); \
  template void DefineInterpGrad<InterpKind::kind, false, spatial>(OpDef&);
HEDDLE_INTERP(kNearest, 0)
HEDDLE_INTERP(kLinear, 1)
HEDDLE_INTERP(kLinear, 2)
HEDDLE_INTERP(kLinear, 3)
HEDDLE_INTERP(kCubic, 2)
#undef HEDDLE_INTERP

}  // namespace heddle

#include "kernels/norm/norm.h"

#include <Eigen/Core>
#include <algorithm>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"

namespace heddle {
namespace {

template <typename T, int kStep>
using Lane = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>, 0, Eigen::InnerStride<kStep>>;
template <typename T, int kStep>
using ConstLane =
    Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>, 0, Eigen::InnerStride<kStep>>;

// The stretches of one group of a tensor.
template <typename T, int kStep>
struct Pieces {
  const NormLayout& layout;
  int64_t group;
  int64_t At(int64_t piece) const { return group * layout.group_step + piece * layout.piece_step; }
  Lane<T, kStep> operator()(T* data, int64_t piece) const {
    return {data + At(piece), layout.length, Stride()};
  }
  ConstLane<T, kStep> operator()(const T* data, int64_t piece) const {
    return {data + At(piece), layout.length, Stride()};
  }
  Eigen::InnerStride<kStep> Stride() const { return Eigen::InnerStride<kStep>(layout.step); }
  // The sum of fn(piece).
  template <typename Fn>
  T Sum(Fn&& fn) const {
    T sum(0);
    for (const int64_t p : Watched(layout.pieces)) sum += fn(p);
    return sum;
  }
};

// Calls fn(pieces) for every group; groups are independent of each other.
template <typename T, typename Fn>
void ForGroups(const KernelContext& ctx, const NormLayout& layout, Fn&& fn) {
  ctx.ParallelFor(layout.groups, 1 + 32768 / (1 + layout.count()), [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      if (layout.step == 1)
        fn(Pieces<T, 1>{layout, g});
      else
        fn(Pieces<T, Eigen::Dynamic>{layout, g});
    }
  });
}

// y = x * factor[c] + shift[c] for channels-last rows.
template <typename T>
void ForwardRows(const KernelContext& ctx, const NormLayout& layout, const T* x, const T* factor,
                 const T* shift, T* y) {
  const int64_t n = layout.channels;
  using Row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
  using ConstRow = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
  const ConstRow a(factor, n), b(shift, n);
  ctx.ParallelFor(layout.length, 1 + 65536 / n, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) Row(y + r * n, n) = ConstRow(x + r * n, n) * a + b;
  });
}

}  // namespace

NormLayout BatchLayout(const Shape& x, bool channels_last) {
  NormLayout l;
  const bool last = channels_last || x.rank() == 2;
  l.channels = l.groups = x.dim(last ? -1 : 1);
  if (last) {
    l.length = x.Product(0, x.rank() - 1);
    l.step = l.channels;
  } else {
    l.pieces = x[0];
    l.length = x.Product(2, x.rank());
    l.group_step = l.length;
    l.piece_step = l.length * l.channels;
  }
  return l;
}

NormLayout InstanceLayout(const Shape& x) {
  NormLayout l;
  l.channels = x[1];
  l.groups = x[0] * x[1];
  l.length = l.group_step = x.Product(2, x.rank());
  return l;
}

template <typename T>
void NormMoments(const KernelContext& ctx, const NormLayout& layout, const T* x, T* mean,
                 T* variance) {
  const T count = static_cast<T>(layout.count());
  ForGroups<T>(ctx, layout, [&](const auto& in) {
    const T m = in.Sum([&](int64_t p) { return in(x, p).sum(); }) / count;
    mean[in.group] = m;
    variance[in.group] = in.Sum([&](int64_t p) { return (in(x, p) - m).square().sum(); }) / count;
  });
}

template <typename T>
void NormForward(const KernelContext& ctx, const NormLayout& layout, const T* x,
                 const NormStats<T>& stats, const NormParams<T>& params, T* y) {
  Tensor scratch = ctx.Scratch(sizeof(T) == 4 ? DType::kF32 : DType::kF64, {2 * layout.groups});
  T* factor = scratch.mutable_data<T>();
  T* shift = factor + layout.groups;
  for (const int64_t g : Watched(layout.groups)) {
    const int64_t c = g % layout.channels;
    factor[g] = stats.inverse[g] * (params.scale ? params.scale[c] : T(1));
    shift[g] = (params.bias ? params.bias[c] : T(0)) - stats.mean[g] * factor[g];
  }
  if (layout.step != 1 && layout.groups == layout.channels && layout.pieces == 1)
    return ForwardRows(ctx, layout, x, factor, shift, y);
  // Pieces rather than groups are shared out: a group may be most of the work.
  const int64_t pieces = layout.groups * layout.pieces;
  ctx.ParallelFor(pieces, 1 + 65536 / (1 + layout.length), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t g = i % layout.groups;
      const Pieces<T, 1> in{layout, g};
      // With moments of its own, a group of nearly equal elements is much closer to its mean than
      // to 0: the difference is taken first.
      if (stats.fixed)
        in(y, i / layout.groups) = in(x, i / layout.groups) * factor[g] + shift[g];
      else
        in(y, i / layout.groups) = (in(x, i / layout.groups) - stats.mean[g]) * factor[g] +
                                   (params.bias ? params.bias[g % layout.channels] : T(0));
    }
  });
}

template <typename T>
void NormBackward(const KernelContext& ctx, const NormLayout& layout, const T* x, const T* dy,
                  const NormStats<T>& stats, const T* scale, T* dx, T* sum_dy, T* sum_dy_x) {
  const T count = static_cast<T>(layout.count());
  ForGroups<T>(ctx, layout, [&](const auto& in) {
    const int64_t g = in.group;
    const T mean = stats.mean[g], inverse = stats.inverse[g];
    const T a = in.Sum([&](int64_t p) { return in(dy, p).sum(); });
    const T b = inverse * in.Sum([&](int64_t p) { return (in(dy, p) * (in(x, p) - mean)).sum(); });
    sum_dy[g] = a;
    sum_dy_x[g] = b;
    if (!dx) return;
    const T factor = inverse * (scale ? scale[g % layout.channels] : T(1));
    const T mean_dy = a / count, slope = b * inverse / count;
    for (const int64_t p : Watched(layout.pieces)) {
      if (stats.fixed)
        in(dx, p) = factor * in(dy, p);
      else
        in(dx, p) = factor * (in(dy, p) - mean_dy - (in(x, p) - mean) * slope);
    }
  });
}

// With h the normalised x and P(v) = v - mean(v) - h mean(v h), the first gradient is
// scale inverse P(dy), d<v, h>/dx = inverse P(v) and d inverse/dx = -inverse^2 h / count.
template <typename T>
void NormDoubleBackward(const KernelContext& ctx, const NormLayout& layout,
                        const NormStats<T>& stats, const T* scale, const NormSecond<T>& io) {
  const T count = static_cast<T>(layout.count());
  ForGroups<T>(ctx, layout, [&](const auto& in) {
    const int64_t g = in.group, c = g % layout.channels;
    const T mean = stats.mean[g], inverse = stats.inverse[g];
    const T s = scale ? scale[c] : T(1);
    const T dds = io.ddscale ? io.ddscale[c] : T(0), ddb = io.ddbias ? io.ddbias[c] : T(0);
    const auto h = [&](int64_t p) { return (in(io.x, p) - mean) * inverse; };
    const auto average = [&](const T* v) {
      return v ? in.Sum([&](int64_t p) { return in(v, p).sum(); }) / count : T(0);
    };
    const auto with_h = [&](const T* v) {
      return v ? in.Sum([&](int64_t p) { return (in(v, p) * h(p)).sum(); }) / count : T(0);
    };
    const T dy_mean = average(io.dy), dy_h = with_h(io.dy);
    const T ddx_mean = average(io.ddx), ddx_h = with_h(io.ddx);
    T both =
        io.ddx ? in.Sum([&](int64_t p) { return (in(io.ddx, p) * in(io.dy, p)).sum(); }) : T(0);
    if (!stats.fixed) both -= count * (ddx_mean * dy_mean + ddx_h * dy_h);
    if (io.dscale) io.dscale[g] = inverse * both;
    for (const int64_t p : Watched(layout.pieces)) {
      if (io.ddy) {
        auto out = in(io.ddy, p);
        out = h(p) * dds + ddb;
        if (io.ddx && stats.fixed)
          out += s * inverse * in(io.ddx, p);
        else if (io.ddx)
          out += s * inverse * (in(io.ddx, p) - ddx_mean - h(p) * ddx_h);
      }
      if (io.dx) {
        auto out = in(io.dx, p);
        if (stats.fixed) {
          out = dds * inverse * in(io.dy, p);
          continue;
        }
        const T weight = inverse * (dds - s * inverse * ddx_h);
        out = weight * (in(io.dy, p) - dy_mean - h(p) * dy_h) -
              h(p) * (s * inverse * inverse * both / count);
        if (io.ddx) out -= s * inverse * inverse * dy_h * (in(io.ddx, p) - ddx_mean - h(p) * ddx_h);
      }
    }
  });
}

template <typename T>
void SumGroups(const NormLayout& layout, const T* per_group, T* per_channel) {
  WatchedFill(per_channel, layout.channels, T(0));
  for (const int64_t g : Watched(layout.groups)) per_channel[g % layout.channels] += per_group[g];
}

#define HEDDLE_NORM(T)                                                                       \
  template void NormMoments<T>(const KernelContext&, const NormLayout&, const T*, T*, T*);   \
  template void NormForward<T>(const KernelContext&, const NormLayout&, const T*,            \
                               const NormStats<T>&, const NormParams<T>&, T*);               \
  template void NormBackward<T>(const KernelContext&, const NormLayout&, const T*, const T*, \
                                const NormStats<T>&, const T*, T*, T*, T*);                  \
  template void NormDoubleBackward<T>(const KernelContext&, const NormLayout&,               \
                                      const NormStats<T>&, const T*, const NormSecond<T>&);  \
  template void SumGroups<T>(const NormLayout&, const T*, T*);
HEDDLE_NORM(float)
HEDDLE_NORM(double)
#undef HEDDLE_NORM

}  // namespace heddle

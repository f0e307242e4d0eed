// spp: spatial pyramid pooling, grids of 1, 4, 16, … bins over each plane, one after the other.
#include <limits>

#include "core/threads/look_meter.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// One level of the pyramid: `bins` by `bins` windows that may reach over the border.
struct Level {
  int64_t bins, kernel_h, kernel_w, pad_h, pad_w;
  Level(int level, int64_t h, int64_t w)
      : bins(int64_t{1} << level),
        kernel_h((h + bins - 1) / bins),
        kernel_w((w + bins - 1) / bins),
        pad_h((kernel_h * bins - h + 1) / 2),
        pad_w((kernel_w * bins - w + 1) / 2) {}
};

Status Infer(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const int64_t height = ctx.Int("pyramid_height");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() != 4 || height < 1 || height > 16)
    return InvalidArgument("X ", x.ToString(), " must be 4-D, pyramid_height ", height,
                           " from 1 to 16");
  if (const std::string& type = ctx.Str("pooling_type"); type != "max" && type != "avg")
    return InvalidArgument("unknown pooling_type '", type, "'");
  const int64_t bins = ((int64_t{1} << (2 * height)) - 1) / 3;
  ctx.SetOut("Out", Shape{x[0], x[1] < 0 ? -1 : x[1] * bins}, ctx.InDType("X"));
  return Status::Ok();
}

// Calls fn(plane of X, window, place in Out) for all windows; a window: rows, then columns.
struct Window {
  int64_t top, bottom, left, right;
};
template <typename Fn>
void ForEachWindow(const Shape& x, int64_t height, Fn fn) {
  const int64_t all = ((int64_t{1} << (2 * height)) - 1) / 3 * x[1];
  int64_t before = 0;
  LookMeter meter;
  for (int l = 0; l < height; ++l) {
    const Level level(l, x[2], x[3]);
    const int64_t per_plane = level.bins * level.bins;
    for (int64_t p = 0; p < x[0] * x[1]; ++p)
      for (int64_t b = 0; b < per_plane; ++b) {
        const int64_t y = b / level.bins * level.kernel_h - level.pad_h;
        const int64_t z = b % level.bins * level.kernel_w - level.pad_w;
        const Window window{std::max<int64_t>(y, 0), std::min(y + level.kernel_h, x[2]),
                            std::max<int64_t>(z, 0), std::min(z + level.kernel_w, x[3])};
        fn(p, window, p / x[1] * all + before + p % x[1] * per_plane + b);
        meter.Did(8);
      }
    before += per_plane * x[1];
  }
}

template <typename T>
struct Spp {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const bool max = ctx.Str("pooling_type") == "max";
    T* out = ctx.Out("Out").template mutable_data<T>();
    const int64_t width = x.dim(3), plane = x.dim(2) * width;
    ForEachWindow(
        x.shape(), ctx.Int("pyramid_height"), [&](int64_t p, const Window& w, int64_t to) {
          const T* from = x.data<T>() + p * plane;
          T value = max ? -std::numeric_limits<T>::max() : T(0);
          for (const int64_t i : Watched(w.top, w.bottom))
            for (int64_t j = w.left; j < w.right; ++j)
              value = max ? std::max(value, from[i * width + j]) : value + from[i * width + j];
          const int64_t count = (w.bottom - w.top) * (w.right - w.left);
          out[to] = max ? value : value / static_cast<T>(count);
        });
    return Status::Ok();
  }
};

Status InferGrad(ShapeContext& ctx) {
  SetOutsLike(ctx, {{"X", "X@GRAD"}});
  return Status::Ok();
}

// The first of equal largest elements gets the gradient.
template <typename T>
struct SppGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &d_out = ctx.In("Out@GRAD");
    const int64_t height = ctx.Int("pyramid_height");
    if (x.rank() != 4 || height < 1 || height > 16 ||
        d_out.numel() != x.dim(0) * x.dim(1) * ((int64_t{1} << (2 * height)) - 1) / 3)
      return InvalidArgument("Out@GRAD ", d_out.shape().ToString(), " does not fit X");
    const bool max = ctx.Str("pooling_type") == "max";
    Tensor& grad = ctx.Out("X@GRAD");
    ZeroAll(grad);
    const int64_t width = x.dim(3), plane = x.dim(2) * width;
    ForEachWindow(x.shape(), height, [&](int64_t p, const Window& w, int64_t from) {
      if (w.bottom <= w.top || w.right <= w.left) return;
      const T *values = x.data<T>() + p * plane, d = d_out.data<T>()[from];
      T* dx = grad.mutable_data<T>() + p * plane;
      int64_t best = w.top * width + w.left;
      // Single precision, as in Paddle.
      const auto count = static_cast<float>((w.bottom - w.top) * (w.right - w.left));
      const T share = d * static_cast<T>(1.f / count);
      for (const int64_t i : Watched(w.top, w.bottom))
        for (int64_t j = w.left; j < w.right; ++j) {
          if (values[i * width + j] > values[best]) best = i * width + j;
          if (!max) dx[i * width + j] += share;
        }
      if (max) dx[best] += d;
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(spp) {
  op.Doc("spatial pyramid pooling").Input("X").Output("Out").Attr("pyramid_height", 1);
  op.Attr("pooling_type", "max").InferShape(Infer).Kernels<Spp, float, double>();
}
HEDDLE_OP(spp_grad) {
  op.Input("X").Input("Out", kOptional | kNoBuffer).Input("Out@GRAD").Output("X@GRAD");
  op.Attr("pyramid_height", 1).Attr("pooling_type", "max");
  op.InferShape(InferGrad).Kernels<SppGrad, float, double>();
}

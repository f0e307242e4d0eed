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

HEDDLE_EXAMPLES(spp, R"(
example float64 3x2x4x4, pooling_type max, pyramid_height 3
attr pooling_type STRING "max"
attr pyramid_height INT 3
in X float64 [3, 2, 4, 4] 80 998 1014 1504 776 1172 1330 1346 539 634 760 1473 159 555 855 871 412
  570 1156 1314 602 713 887 1061 618 1045 1299 1362 64 317 365 1093 48 111 222 1204 143 396 919 1520
  96 206 475 903 254 285 444 950 301 745 1124 1457 507 1188 1409 1425 380 697 792 1219 127 270 1077
  1378 349 428 808 1488 191 523 840 1109 175 238 1235 1441 460 1251 1267 1283 333 491 665 934 586
  650 681 966 16 32 729 982 824 1029 1140 1394
out Out float64 [3, 42] 1504 1362 1172 1504 634 1473 713 1314 1045 1362 80 998 1014 1504 776 1172
  1330 1346 539 634 760 1473 159 555 855 871 412 570 1156 1314 602 713 887 1061 618 1045 1299 1362
  64 317 365 1093 1520 1457 396 1520 285 950 1188 1457 697 1378 48 111 222 1204 143 396 919 1520 96
  206 475 903 254 285 444 950 301 745 1124 1457 507 1188 1409 1425 380 697 792 1219 127 270 1077
  1378 1488 1394 523 1488 1251 1441 650 966 1029 1394 349 428 808 1488 191 523 840 1109 175 238 1235
  1441 460 1251 1267 1283 333 491 665 934 586 650 681 966 16 32 729 982 824 1029 1140 1394

example float32 3x2x4x4, pooling_type max, pyramid_height 3
attr pooling_type STRING "max"
attr pyramid_height INT 3
in X float32 [3, 2, 4, 4] 80 998 1014 1504 776 1172 1330 1346 539 634 760 1473 159 555 855 871 412
  570 1156 1314 602 713 887 1061 618 1045 1299 1362 64 317 365 1093 48 111 222 1204 143 396 919 1520
  96 206 475 903 254 285 444 950 301 745 1124 1457 507 1188 1409 1425 380 697 792 1219 127 270 1077
  1378 349 428 808 1488 191 523 840 1109 175 238 1235 1441 460 1251 1267 1283 333 491 665 934 586
  650 681 966 16 32 729 982 824 1029 1140 1394
out Out float32 [3, 42] 1504 1362 1172 1504 634 1473 713 1314 1045 1362 80 998 1014 1504 776 1172
  1330 1346 539 634 760 1473 159 555 855 871 412 570 1156 1314 602 713 887 1061 618 1045 1299 1362
  64 317 365 1093 1520 1457 396 1520 285 950 1188 1457 697 1378 48 111 222 1204 143 396 919 1520 96
  206 475 903 254 285 444 950 301 745 1124 1457 507 1188 1409 1425 380 697 792 1219 127 270 1077
  1378 1488 1394 523 1488 1251 1441 650 966 1029 1394 349 428 808 1488 191 523 840 1109 175 238 1235
  1441 460 1251 1267 1283 333 491 665 934 586 650 681 966 16 32 729 982 824 1029 1140 1394
)")

HEDDLE_EXAMPLES(spp_grad, R"(
example max
attr pooling_type STRING "max"
attr pyramid_height INT 2
in Out float64 [1, 10] 0.67 0.92 0.6 0.47 0.58 0.67 0.92 0.41 0.81 0.24
in Out@GRAD float64 [1, 10] 0.9 -0.8 0.4 0.4 -0 0 0.8 -0.8 0.7 -0.3
in X float64 [1, 2, 3, 4] 0.6 -0.56 0.22 0.47 -0.25 -0.33 0.41 0.1 0.58 -0.98 -0.06 0.67 -0.37 0.92
  -0.32 0.41 0.63 0.81 0.24 -0.69 -0.72 0.47 -0.05 -0.55
out X@GRAD float64 [1, 2, 3, 4] 0.4 0 0 0.4 0*7 0.9 0 0 0 -0.8 0 0.7 -0.3 0*5

example avg
attr pooling_type STRING "avg"
attr pyramid_height INT 2
in Out float64 [1, 10] -0.01416666666666666 -0.22249999999999992 -0.375 0.05499999999999999 -0.31
  0.4275 -0.585 -0.415 -0.255 0.08750000000000001
in Out@GRAD float64 [1, 10] 0.9 -0.8 0.4 0.4 -0 0 0.8 -0.8 0.7 -0.3
in X float64 [1, 2, 3, 4] -0.85 0.1 0.92 -0.81 0.86 -0.7 -0.48 0.85 -0.45 -0.95 0.36 0.98 -0.54
  -0.63 0.13 -0.96 -0.05 -0.42 -0.19 0.55 -0.19 -0.36 -0.36 0.35
out X@GRAD float64 [1, 2, 3, 4] 0.2750000022351742*4 0.07500000223517418*8 0.3333333313465119
  0.3333333313465119 -0.46666666865348816 -0.46666666865348816 0.10833333134651182
  0.10833333134651182 -0.14166666865348815 -0.14166666865348815 0.10833333134651182
  0.10833333134651182 -0.14166666865348815 -0.14166666865348815
)")

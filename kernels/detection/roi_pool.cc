// roi_pool: the maximum of each bin of a region. psroi_pool: the mean, each bin from a channel of
// its own.
#include <cmath>
#include <limits>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/base/to_place.h"
#include "kernels/detection/rois.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

struct PoolSetup {
  int64_t channels, height, width, rows, cols;
  float scale;

  PoolSetup(const OpContext& ctx, const Shape& x)
      : channels(x[1]),
        height(x[2]),
        width(x[3]),
        rows(ctx.Int("pooled_height")),
        cols(ctx.Int("pooled_width")),
        scale(static_cast<float>(ctx.Float("spatial_scale"))) {}
  int64_t plane() const { return height * width; }
  int64_t bins() const { return rows * cols; }
};

// The rows and columns of a bin, cut at the image's border.
struct Bin {
  int64_t top, bottom, left, right;
  bool empty() const { return bottom <= top || right <= left; }
  int64_t area() const { return (bottom - top) * (right - left); }
};

// --- roi_pool ---

template <typename T>
struct Region {
  int64_t left, top;
  float bin_h, bin_w;

  Region(const PoolSetup& s, const T* roi) : left(At(roi[0], s)), top(At(roi[1], s)) {
    const int64_t h = std::max<int64_t>(At(roi[3], s) - top + 1, 1);
    const int64_t w = std::max<int64_t>(At(roi[2], s) - left + 1, 1);
    bin_h = static_cast<float>(h) / static_cast<float>(s.rows);
    bin_w = static_cast<float>(w) / static_cast<float>(s.cols);
  }
  static int64_t At(T x, const PoolSetup& s) { return ToPlace(std::round(x * s.scale)); }
  Bin At(const PoolSetup& s, int64_t row, int64_t col) const {
    const auto cut = [](float x, int64_t from, int64_t limit) {
      return std::clamp<int64_t>(ToPlace(x) + from, 0, limit);
    };
    return {cut(std::floor(static_cast<float>(row) * bin_h), top, s.height),
            cut(std::ceil(static_cast<float>(row + 1) * bin_h), top, s.height),
            cut(std::floor(static_cast<float>(col) * bin_w), left, s.width),
            cut(std::ceil(static_cast<float>(col + 1) * bin_w), left, s.width)};
  }
};

Status InferPool(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckRoiOperands(ctx));
  const Shape &x = ctx.InShape("X"), &rois = ctx.InShape("ROIs");
  if (!x.known_rank() || !rois.known_rank()) return ctx.Defer();
  const Shape out{rois[0], x[1], ctx.Int("pooled_height"), ctx.Int("pooled_width")};
  ctx.SetOut("Out", out, ctx.InDType("X"));
  ctx.SetOut("Argmax", out, DType::kI64);
  return Status::Ok();
}

template <typename T>
struct RoiPool {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &rois = ctx.In("ROIs");
    const PoolSetup s(ctx, x.shape());
    CallHeap heap(ctx);
    HEDDLE_ASSIGN_OR_RETURN(const std::pmr::vector<int64_t> image, ImagesOf(ctx, x.dim(0), &heap));
    T* out = ctx.Out("Out").template mutable_data<T>();
    Tensor* places = ctx.OutOpt("Argmax");
    int64_t* argmax = places != nullptr ? places->mutable_data<int64_t>() : nullptr;
    const int64_t all = s.channels * s.bins();
    ctx.ParallelFor(rois.dim(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* from = x.data<T>() + image[static_cast<size_t>(r)] * s.channels * s.plane();
        const Region<T> region(s, rois.data<T>() + r * 4);
        for (int64_t c = 0; c < s.channels; ++c)
          for (const int64_t b : Watched(s.bins())) {
            int64_t at;
            const T best =
                Max(from + c * s.plane(), s.width, region.At(s, b / s.cols, b % s.cols), &at);
            out[r * all + c * s.bins() + b] = best;
            if (argmax != nullptr) argmax[r * all + c * s.bins() + b] = at;
          }
      }
    });
    return Status::Ok();
  }
  static T Max(const T* plane, int64_t width, const Bin& bin, int64_t* at) {
    T best = bin.empty() ? T(0) : -std::numeric_limits<T>::max();
    *at = -1;
    for (const int64_t h : Watched(bin.top, bin.bottom))
      for (int64_t w = bin.left; w < bin.right; ++w)
        if (plane[h * width + w] > best) best = plane[*at = h * width + w];
    return best;
  }
};

Status InferPoolGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckRoiOperands(ctx));
  SetOutsLike(ctx, {{"X", "X@GRAD"}});
  return Status::Ok();
}

template <typename T>
struct RoiPoolGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &rois = ctx.In("ROIs"), &d = ctx.In("Out@GRAD");
    const Tensor& argmax = ctx.In("Argmax");
    const PoolSetup s(ctx, x.shape());
    CallHeap heap(ctx);
    HEDDLE_ASSIGN_OR_RETURN(const std::pmr::vector<int64_t> image, ImagesOf(ctx, x.dim(0), &heap));
    const int64_t planes = rois.dim(0) * s.channels;
    if (d.numel() != planes * s.bins() || argmax.numel() != d.numel() ||
        argmax.dtype() != DType::kI64 || d.dtype() != x.dtype())
      return InvalidArgument("Argmax and Out@GRAD do not fit X and ROIs");
    Tensor& dx = ctx.Out("X@GRAD");
    ZeroAll(dx);
    for (const int64_t p : Watched(planes)) {
      const int64_t n = image[static_cast<size_t>(p / s.channels)], c = p % s.channels;
      T* to = dx.mutable_data<T>() + (n * s.channels + c) * s.plane();
      for (int64_t b = p * s.bins(); b < (p + 1) * s.bins(); ++b) {
        const int64_t at = argmax.data<int64_t>()[b];
        if (at >= s.plane()) return OutOfRange("Argmax holds ", at);
        if (at >= 0) to[at] += d.data<T>()[b];
      }
    }
    return Status::Ok();
  }
};

// --- psroi_pool ---

Status InferPsPool(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckRoiOperands(ctx));
  const Shape &x = ctx.InShape("X"), &rois = ctx.InShape("ROIs");
  if (!x.known_rank() || !rois.known_rank()) return ctx.Defer();
  const int64_t rows = ctx.Int("pooled_height"), cols = ctx.Int("pooled_width");
  const int64_t channels = ctx.Int("output_channels");
  if (channels < 1 || (x[1] >= 0 && x[1] != channels * rows * cols))
    return InvalidArgument("X has ", x[1], " channels; ", channels, " for each of ", rows * cols,
                           " bins are expected");
  ctx.SetOut("Out", Shape{rois[0], channels, rows, cols}, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
Bin PsBin(const PoolSetup& s, const T* roi, int64_t row, int64_t col) {
  const T left = static_cast<T>(std::round(roi[0])) * s.scale;
  const T top = static_cast<T>(std::round(roi[1])) * s.scale;
  const T right = static_cast<T>(std::round(roi[2]) + 1.) * s.scale;
  const T bottom = static_cast<T>(std::round(roi[3]) + 1.) * s.scale;
  const T h = std::max(bottom - top, static_cast<T>(0.1)) / static_cast<T>(s.rows);
  const T w = std::max(right - left, static_cast<T>(0.1)) / static_cast<T>(s.cols);
  const auto cut = [](T x, int64_t limit) { return std::clamp<int64_t>(ToPlace(x), 0, limit); };
  return {cut(std::floor(static_cast<T>(row) * h + top), s.height),
          cut(std::ceil(static_cast<T>(row + 1) * h + top), s.height),
          cut(std::floor(static_cast<T>(col) * w + left), s.width),
          cut(std::ceil(static_cast<T>(col + 1) * w + left), s.width)};
}

// Calls fn(bin, offset of its plane in X, place in Out) for all bins of all regions.
template <typename T, typename Fn>
Status ForEachPsBin(KernelContext& ctx, const PoolSetup& s, Fn fn) {
  const Tensor &x = ctx.In("X"), &rois = ctx.In("ROIs");
  CallHeap heap(ctx);
  HEDDLE_ASSIGN_OR_RETURN(const std::pmr::vector<int64_t> image, ImagesOf(ctx, x.dim(0), &heap));
  for (const int64_t r : Watched(rois.dim(0)))
    for (int64_t k = 0; k < s.channels; ++k) {
      const int64_t b = k % s.bins();
      const Bin bin = PsBin(s, rois.data<T>() + r * 4, b / s.cols, b % s.cols);
      fn(bin, (image[static_cast<size_t>(r)] * s.channels + k) * s.plane(), r * s.channels + k);
    }
  return Status::Ok();
}

template <typename T>
struct PsRoiPool {
  static Status Run(KernelContext& ctx) {
    const PoolSetup s(ctx, ctx.In("X").shape());
    const T* x = ctx.In("X").template data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    return ForEachPsBin<T>(ctx, s, [&](const Bin& bin, int64_t plane, int64_t to) {
      T sum = 0;
      for (const int64_t h : Watched(bin.top, bin.bottom))
        for (int64_t w = bin.left; w < bin.right; ++w) sum += x[plane + h * s.width + w];
      out[to] = bin.empty() ? T(0) : sum / static_cast<T>(bin.area());
    });
  }
};

template <typename T>
struct PsRoiPoolGrad {
  static Status Run(KernelContext& ctx) {
    const PoolSetup s(ctx, ctx.In("X").shape());
    const Tensor& d = ctx.In("Out@GRAD");
    if (d.numel() != ctx.In("ROIs").dim(0) * s.channels || s.channels % s.bins() != 0)
      return InvalidArgument("Out@GRAD ", d.shape().ToString(), " does not fit X and ROIs");
    Tensor& grad = ctx.Out("X@GRAD");
    ZeroAll(grad);
    T* dx = grad.mutable_data<T>();
    return ForEachPsBin<T>(ctx, s, [&](const Bin& bin, int64_t plane, int64_t from) {
      if (bin.empty()) return;
      const T share = d.data<T>()[from] / static_cast<T>(bin.area());
      for (const int64_t h : Watched(bin.top, bin.bottom))
        for (int64_t w = bin.left; w < bin.right; ++w) dx[plane + h * s.width + w] += share;
    });
  }
};

void DefineRoiPool(OpDef& op) {
  op.Input("ROIs").Input("RoisNum", kOptional);
  op.Attr("pooled_height", 1).Attr("pooled_width", 1).Attr("spatial_scale", 1.0);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(roi_pool) {
  op.Doc("the maximum of each bin of regions of feature maps").Input("X");
  DefineRoiPool(op);
  op.Output("Out").Output("Argmax", kOptional);
  op.InferShape(InferPool).Kernels<RoiPool, float, double>();
}
HEDDLE_OP(roi_pool_grad) {
  op.Input("X", kNoBuffer);
  DefineRoiPool(op);
  op.Input("Argmax").Input("Out@GRAD").Output("X@GRAD");
  op.InferShape(InferPoolGrad).Kernels<RoiPoolGrad, float, double>();
}
HEDDLE_OP(psroi_pool) {
  op.Doc("the mean of each bin of regions, each bin from channels of its own").Input("X");
  DefineRoiPool(op);
  op.Output("Out").Attr("output_channels", 1);
  op.InferShape(InferPsPool).Kernels<PsRoiPool, float, double>();
}
HEDDLE_OP(psroi_pool_grad) {
  op.Input("X", kNoBuffer);
  DefineRoiPool(op);
  op.Input("Out@GRAD").Output("X@GRAD").Attr("output_channels", 1);
  op.InferShape(InferPoolGrad).Kernels<PsRoiPoolGrad, float, double>();
}

HEDDLE_EXAMPLES(roi_pool, R"(
example float32 1x2x3x2, pooled_height 2, pooled_width 2
attr pooled_height INT 2
attr pooled_width INT 2
in ROIs float32 [1, 4] 6 1 2 5
in RoisNum int32 [1] 1
in X float32 [1, 2, 3, 2] -1.05 1.05 0.75 -0.15 -1.35 -0.45 0.15 1.65 -1.65 1.35 0.45 -0.75
out Argmax int64 [1, 2, 2, 2] -1*8
out Out float32 [1, 2, 2, 2] 0*8

example float32 1x3x3x2, pooled_height 2, pooled_width 3
attr pooled_height INT 2
attr pooled_width INT 3
in ROIs float32 [1, 4] 5 4 7 6
in RoisNum int32 [1] 1
in X float32 [1, 3, 3, 2] 1.14 -1.35 0.52 -0.1 -0.31 1.35 -1.14 -1.76 -0.93 -1.56 0.73 1.76 0.1 1.56
  -0.52 -0.73 0.93 0.31
out Argmax int64 [1, 3, 2, 3] -1*18
out Out float32 [1, 3, 2, 3] 0*18

example float64 1x2x3x2, pooled_height 2, pooled_width 2
attr pooled_height INT 2
attr pooled_width INT 2
in ROIs float64 [1, 4] 6 1 2 5
in RoisNum int32 [1] 1
in X float64 [1, 2, 3, 2] -1.05 1.05 0.75 -0.15 -1.35 -0.45 0.15 1.65 -1.65 1.35 0.45 -0.75
out Argmax int64 [1, 2, 2, 2] -1*8
out Out float64 [1, 2, 2, 2] 0*8
)")

HEDDLE_EXAMPLES(roi_pool_grad, R"(
example int64 1x3x2x3, pooled_height 2, pooled_width 3
attr pooled_height INT 2
attr pooled_width INT 3
in Argmax int64 [1, 3, 2, 3] -1*18
in Out@GRAD float64 [1, 3, 2, 3] -0.9 -0.3 0.8 -0.2 -0.5 -0.8 -0.2 -1 0 0.7 -0.7 0.1 0.4 -0.9 -0.3
  0.6 0.5 0.3
in ROIs float64 [1, 4] 4 3 2 4
in RoisNum int32 [1] 1
in X float64 [1, 3, 3, 2] -1.14 1.76 1.35 0.93 -0.52 -1.35 -0.73 0.31 -0.93 -0.1 0.1 1.56 -1.56 0.73
  1.14 0.52 -1.76 -0.31
out X@GRAD float64 [1, 3, 3, 2] 0*18

example int64 1x3x2x3, pooled_height 2, pooled_width 3, no. 2
attr pooled_height INT 2
attr pooled_width INT 3
in Argmax int64 [1, 3, 2, 3] -1*18
in Out@GRAD float32 [1, 3, 2, 3] -0.9 -0.3 0.8 -0.2 -0.5 -0.8 -0.2 -1 0 0.7 -0.7 0.1 0.4 -0.9 -0.3
  0.6 0.5 0.3
in ROIs float32 [1, 4] 4 3 2 4
in RoisNum int32 [1] 1
in X float32 [1, 3, 3, 2] -1.14 1.76 1.35 0.93 -0.52 -1.35 -0.73 0.31 -0.93 -0.1 0.1 1.56 -1.56 0.73
  1.14 0.52 -1.76 -0.31
out X@GRAD float32 [1, 3, 3, 2] 0*18
)")

HEDDLE_EXAMPLES(psroi_pool, R"(
example float32
attr pooled_height INT 2
attr pooled_width INT 2
attr spatial_scale FLOAT 1.0
attr output_channels INT 2
in X float32 [1, 8, 3, 4] -0.96 0.51 0.2 0.92 0.33 0.21 -0.1 -0.55 0.34 0.47 -0.48 -0.81 0.92 -0.5
  -0.44 0.54 0.6 0.09 -0.23 -0.24 -0.43 0.48 -0.52 -0.12 0.77 -0.42 0.57 0.52 -0.16 -0.55 -0.16
  -0.87 0.19 0.67 0.78 -0.6 0 0.79 -0.49 0.73 -0.97 0.1 0.06 0.85 -0.51 -0.87 0.8 0.75 -0.67 1 -0.31
  -0.37 0.69 0.76 0.35 -0.89 0.12 0.39 0.65 -0.38 0.01 0.7 -0.41 0.35 -0.16 0.36 -0.56 0.1 0.7 0.47
  -0 -0.24 0.58 -0.66 0.17 -0.14 -0.88 -0.42 0.47 -0.42 -0.22 0.27 0.66 -0.36 -0.68 0.42 0.75 0.19
  0.39 -0.65 0.06 0.74 0.68 0.94 0.56 -0.61
in ROIs float32 [2, 4] lod [[0, 2]] 0 0 3 3 1 0 2 3
out Out float32 [2, 2, 2, 2] 0.022500005 -0.092499994 0.43 0.775 0.445 -0.13 0.025000006
  -0.025000006 0.35999998 -0.335 0.67 0.8 0.88 -0.485 0.27 0.56

example float64
attr pooled_height INT 2
attr pooled_width INT 2
attr spatial_scale FLOAT 1.0
attr output_channels INT 2
in X float64 [1, 8, 3, 4] 0.89 -0.13 -0.81 0.5 0.61 -0.32 -0.68 0.73 -0.42 -0.7 -0.78 -0.59 0.42
  0.87 -0.92 -0.34 0.75 -0.13 0.43 -0.02 -0.38 0.42 0.21 -0.1 -0.19 -0.09 0.22 0.11 0.88 0.5 0.73
  -0.62 -0.94 -0.8 0.69 -0.29 -0.04 0.01 -0.65 0.34 -0.37 0.33 -0.51 0.83 -0.49 -0.25 -0.2 -0.56
  0.35 -0.12 0.87 -0.22 -0.42 -0.44 0.32 -0.78 -0.67 -0.4 -0.42 -0.95 -0.76 0.41 -0.52 -0.24 -0.64
  -0.47 0.23 -0.73 0.54 -0.78 0.33 0.4 0.03 -0.44 -0.17 -0.84 0.24 0.73 -0.92 0.51 0.94 0.58 -0.74
  -0.65 -0.58 0 0.71 -0.1 -0.86 0.59 -0.01 -0.86 0.23 0.14 -0.06 -0.31
in ROIs float64 [2, 4] lod [[0, 2]] 0 0 3 3 1 0 2 3
out Out float64 [2, 2, 2, 2] 0.2625 -0.21250000000000002 -0.87 -0.38 -0.1575 -0.315 0.76 -0.185
  -0.225 -0.24500000000000002 -0.8 -0.2 -0.28 -0.14500000000000002 0.58 -0.06
)")

HEDDLE_EXAMPLES(psroi_pool_grad, R"(
example float32
attr pooled_height INT 2
attr pooled_width INT 2
attr spatial_scale FLOAT 1.0
attr output_channels INT 2
in X float32 [1, 8, 3, 4] 0.22 -0.04 0.23 -0.72 -0.18 0.56 0.88 -0.79 0.88 0.59 -0.34 -0.38 -0.42
  -0.65 0.76 0.64 0.47 0.69 0.22 -0.31 -0.54 0.89 -0.42 -0.18 -0.32 0.9 -0.54 -0.66 -0.02 0.81 0.77
  -0.61 0.04 -0.65 0.8 -0.24 0.41 0.02 0.27 0.87 -0.58 -0.33 0.32 -0.17 -0.49 0.75 -0.2 0.12 -0.66
  -0.98 -0.18 -0.79 0.05 -0.08 -0.18 0.52 -0.96 0.23 0.3 0.44 0.15 0.99 0.22 0 -0.29 -0.71 0.53 0.73
  -0.07 0.88 0.39 0.44 0.21 0.75 0.76 0.83 -0.92 0.6 0.98 -0.75 -0.71 -0.87 -0.32 0.59 0.13 0.48
  -0.49 0.22 0.88 0.48 -0.27 -0.3 -0.73 0.69 -0.14 0.56
in ROIs float32 [2, 4] lod [[0, 2]] 0 0 3 3 1 0 2 3
in Out@GRAD float32 [2, 2, 2, 2] -0.62 -0.99 0.76 0.76 0.16 -0.8 0.02 -0.02 -0.02 0.51 0.85 -0.33
  0.23 0.99 0.57 0.73
out X@GRAD float32 [1, 8, 3, 4] -0.155 -0.165 0 0 -0.155 -0.165 0*8 0.007499993 -0.2475 0 0
  0.007499993 -0.2475 0*12 0.38 1.23 0*12 0.049999982 0.38 0.04 0.155 0 0 0.04 0.155 0*8 0.29500002
  -0.2 0 0 0.29500002 -0.2 0*12 0.01 0.58 0*12 0.72 -0.01

example float64
attr pooled_height INT 2
attr pooled_width INT 2
attr spatial_scale FLOAT 1.0
attr output_channels INT 2
in X float64 [1, 8, 3, 4] -0.41 -0.57 0.01 0.66 -0.81 0.62 -0.8 -0.07 -0.81 0.77 0.63 0.79 -0.55
  -0.97 -0.28 0.54 0.78 -0.53 0.4 -0.87 -0.73 -0.65 -0.13 -0.64 -0.04 0.22 0.71 -1 0.28 -0.89 -0.78
  0.05 -0.59 -0.49 -0.56 -0.02 -0.72 0.58 -0.89 0.44 -0.63 0.02 0.25 0.79 -0.4 -0.49 0.26 0.99 0.78
  -0.86 -0.03 -0.24 0.77 -0.54 1 -0.25 -0 -0 -0.98 -0.25 0.46 0.48 -0.55 0.05 0.42 -0.04 -0.87 0.4
  -0.44 -0.16 0.23 0.02 0.36 0.96 -0.36 -0.77 -0.49 0.18 0.01 0.91 0.02 -0.66 -0.46 0.9 -0.11 0.41
  0.22 -0.44 0.45 -0.4 0.62 -0.16 -0.84 -0.17 -0.63 0.73
in ROIs float64 [2, 4] lod [[0, 2]] 0 0 3 3 1 0 2 3
in Out@GRAD float64 [2, 2, 2, 2] -0.09 -0.7 -0.28 -0.22 0.27 0.96 -0.24 0.34 0.65 0.88 -0.78 -0
  -0.64 -0.87 0.48 0.52
out X@GRAD float64 [1, 8, 3, 4] -0.0225 0.3025 0 0 -0.0225 0.3025 0*8 0.265 -0.175 0 0 0.265 -0.175
  0*12 -0.14 -0.92 0*12 -0.11 -0.11 0.0675 -0.2525 0 0 0.0675 -0.2525 0*8 -0.195 0.24 0 0 -0.195
  0.24 0*12 -0.12 0.36 0*12 0.6900000000000001 0.17
)")

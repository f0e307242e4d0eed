// roi_pool: the maximum of each bin of a region. psroi_pool: the mean, each bin from a channel of
// its own.
#include <cmath>
#include <limits>

#include "core/interrupts.h"
#include "kernels/base/convert.h"
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
  if (ctx.HasOut("Argmax")) ctx.SetOut("Argmax", out, DType::kI64);
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
  op.Input("Images", kOptional);  // of each region; else RoisNum or sequences say it
  op.Output("Out").Output("Argmax", kOptional).KernelKey("X");
  op.InferShape(InferPool).Kernels<RoiPool, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(roi_pool_grad) {
  op.Input("X", kNoBuffer);
  DefineRoiPool(op);
  op.Input("Images", kOptional).Input("Argmax").Input("Out@GRAD").Output("X@GRAD");
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

#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_checks.h"
#include "kernels/detection/rois.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// Samples along one side of a bin: far more than there are pixels to sample.
constexpr int64_t kMostSamples = 1 << 10;

Status CheckRatio(const OpContext& ctx) {
  if (ctx.Int("sampling_ratio") <= kMostSamples) return Status::Ok();
  return InvalidArgument("sampling_ratio is ", ctx.Int("sampling_ratio"), ", above the limit of ",
                         kMostSamples);
}

Status InferAlign(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckRatio(ctx));
  if (const std::string& mode = ctx.Str("mode"); mode != "avg" && mode != "max")
    return InvalidArgument("mode is '", mode, "', expected avg or max");
  HEDDLE_RETURN_IF_ERROR(CheckRoiOperands(ctx));
  const Shape &x = ctx.InShape("X"), &rois = ctx.InShape("ROIs");
  if (!x.known_rank() || !rois.known_rank()) return ctx.Defer();
  ctx.SetOut("Out", Shape{rois[0], x[1], ctx.Int("pooled_height"), ctx.Int("pooled_width")},
             ctx.InDType("X"));
  return Status::Ok();
}

// A bilinear sample: four positions in a plane and their weights.
template <typename T>
struct Sample {
  int64_t at[4];
  T weight[4];
};

// False when the point lies outside the plane.
template <typename T>
bool MakeSample(T y, T x, int64_t height, int64_t width, Sample<T>* s) {
  if (!(y >= T(-1) && y <= static_cast<T>(height) && x >= T(-1) && x <= static_cast<T>(width)))
    return false;
  y = std::max(y, T(0));
  x = std::max(x, T(0));
  int64_t y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x), y1 = y0 + 1, x1 = x0 + 1;
  if (y0 >= height - 1) y = static_cast<T>(y0 = y1 = height - 1);
  if (x0 >= width - 1) x = static_cast<T>(x0 = x1 = width - 1);
  const T ly = y - static_cast<T>(y0), lx = x - static_cast<T>(x0), hy = T(1) - ly, hx = T(1) - lx;
  *s = {{y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1},
        {hy * hx, hy * lx, ly * hx, ly * lx}};
  return true;
}

struct AlignSetup {
  int64_t channels, height, width, rows, cols, ratio;
  double scale;
  bool aligned;

  AlignSetup(const OpContext& ctx, const Shape& x)
      : channels(x[1]),
        height(x[2]),
        width(x[3]),
        rows(ctx.Int("pooled_height")),
        cols(ctx.Int("pooled_width")),
        ratio(ctx.Int("sampling_ratio")),
        scale(ctx.Float("spatial_scale")),
        aligned(ctx.Bool("aligned")) {}
};

template <typename T>
Status CheckRegions(const AlignSetup& s, const Tensor& rois) {
  const T scale = static_cast<T>(s.scale);
  for (const int64_t r : Watched(rois.dim(0))) {
    const T* roi = rois.data<T>() + r * 4;
    const T w = (roi[2] - roi[0]) * scale, h = (roi[3] - roi[1]) * scale;
    if (!std::isfinite(w) || !std::isfinite(h) || std::abs(w) > T(1e6) || std::abs(h) > T(1e6))
      return InvalidArgument("a region of ROIs is not of reasonable size");
  }
  return Status::Ok();
}

// Calls fn(bin, sample, share, first) for every sample of a region, those of a bin one after
// another; null: it lies outside the plane. `share` is 1 / samples of the bin.
template <typename T, typename Fn>
void ForEachSample(const AlignSetup& s, const T* roi, Fn fn) {
  const T scale = static_cast<T>(s.scale), offset = s.aligned ? T(0.5) : T(0);
  const T left = roi[0] * scale - offset, top = roi[1] * scale - offset;
  T w = roi[2] * scale - offset - left, h = roi[3] * scale - offset - top;
  if (!s.aligned) {
    w = std::max(w, T(1));
    h = std::max(h, T(1));
  }
  const T bin_h = h / static_cast<T>(s.rows), bin_w = w / static_cast<T>(s.cols);
  const int64_t ny = s.ratio > 0 ? s.ratio : static_cast<int64_t>(std::ceil(bin_h));
  const int64_t nx = s.ratio > 0 ? s.ratio : static_cast<int64_t>(std::ceil(bin_w));
  const T share = T(1) / static_cast<T>(std::max<int64_t>(ny * nx, 1));
  Sample<T> sample;
  for (const int64_t bin : Watched(s.rows * s.cols))
    for (int64_t iy = 0; iy < ny; ++iy)
      for (int64_t ix = 0; ix < nx; ++ix) {
        const T y = top + static_cast<T>(bin / s.cols) * bin_h +
                    (static_cast<T>(iy) + T(0.5)) * bin_h / static_cast<T>(ny);
        const T x = left + static_cast<T>(bin % s.cols) * bin_w +
                    (static_cast<T>(ix) + T(0.5)) * bin_w / static_cast<T>(nx);
        const bool inside = MakeSample(y, x, s.height, s.width, &sample);
        fn(bin, inside ? &sample : nullptr, share, iy == 0 && ix == 0);
      }
}

template <typename T>
struct RoiAlign {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &rois = ctx.In("ROIs");
    const AlignSetup s(ctx, x.shape());
    CallHeap heap(ctx);
    HEDDLE_ASSIGN_OR_RETURN(const std::pmr::vector<int64_t> image, ImagesOf(ctx, x.dim(0), &heap));
    Tensor& out = ctx.Out("Out");
    ZeroAll(out);
    const int64_t plane = s.height * s.width, bins = s.rows * s.cols;
    if (plane == 0) return Status::Ok();
    HEDDLE_RETURN_IF_ERROR(CheckRegions<T>(s, rois));
    const bool max = ctx.Str("mode") == "max";
    ctx.ParallelFor(rois.dim(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* from = x.data<T>() + image[static_cast<size_t>(r)] * s.channels * plane;
        T* to = out.mutable_data<T>() + r * s.channels * bins;
        if (max)
          Maxima(s, rois.data<T>() + r * 4, from, to);
        else
          Means(s, rois.data<T>() + r * 4, from, to);
      }
    });
    return Status::Ok();
  }

  static void Means(const AlignSetup& s, const T* roi, const T* from, T* to) {
    const int64_t plane = s.height * s.width, bins = s.rows * s.cols;
    ForEachSample(s, roi, [&](int64_t bin, const Sample<T>* p, T share, bool) {
      for (int64_t c = 0; p != nullptr && c < s.channels; ++c) {
        T sum = 0;
        for (int i = 0; i < 4; ++i) sum += p->weight[i] * from[c * plane + p->at[i]];
        to[c * bins + bin] += sum * share;
      }
    });
  }

  // The greatest weighted neighbour of all samples of a bin; one outside counts as 0.
  static void Maxima(const AlignSetup& s, const T* roi, const T* from, T* to) {
    const int64_t plane = s.height * s.width, bins = s.rows * s.cols;
    ForEachSample(s, roi, [&](int64_t bin, const Sample<T>* p, T, bool first) {
      for (int64_t c = 0; c < s.channels; ++c) {
        T most = 0;
        for (int i = 0; p != nullptr && i < 4; ++i) {
          const T v = p->weight[i] * from[c * plane + p->at[i]];
          most = i == 0 ? v : std::max(most, v);
        }
        T& best = to[c * bins + bin];
        best = first ? most : std::max(best, most);
      }
    });
  }
};

Status InferAlignGrad(ShapeContext& ctx) {
  if (ctx.Str("mode") != "avg")
    return Unimplemented("the gradient of the mode '", ctx.Str("mode"), "'");
  HEDDLE_RETURN_IF_ERROR(CheckRatio(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckRoiOperands(ctx));
  const Shape &x = ctx.InShape("X"), &rois = ctx.InShape("ROIs"), &d = ctx.InShape("Out@GRAD");
  if (x.is_static() && rois.is_static() && d.is_static() &&
      d.numel() != rois[0] * x[1] * ctx.Int("pooled_height") * ctx.Int("pooled_width"))
    return InvalidArgument("Out@GRAD ", d.ToString(), " does not fit X and ROIs");
  SetOutsLike(ctx, {{"X", "X@GRAD"}});
  return Status::Ok();
}

template <typename T>
struct RoiAlignGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &rois = ctx.In("ROIs");
    const AlignSetup s(ctx, x.shape());
    CallHeap heap(ctx);
    HEDDLE_ASSIGN_OR_RETURN(const std::pmr::vector<int64_t> image, ImagesOf(ctx, x.dim(0), &heap));
    Tensor& dx = ctx.Out("X@GRAD");
    ZeroAll(dx);
    const int64_t plane = s.height * s.width, bins = s.rows * s.cols;
    if (plane == 0) return Status::Ok();
    HEDDLE_RETURN_IF_ERROR(CheckRegions<T>(s, rois));
    for (const int64_t r : Watched(rois.dim(0))) {
      T* to = dx.mutable_data<T>() + image[static_cast<size_t>(r)] * s.channels * plane;
      const T* d = ctx.In("Out@GRAD").template data<T>() + r * s.channels * bins;
      ForEachSample(s, rois.data<T>() + r * 4, [&](int64_t bin, const Sample<T>* p, T share, bool) {
        for (int64_t c = 0; p != nullptr && c < s.channels; ++c)
          for (int i = 0; i < 4; ++i)
            to[c * plane + p->at[i]] += p->weight[i] * d[c * bins + bin] * share;
      });
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(roi_align) {
  op.Doc("regions of feature maps, sampled bilinearly to a fixed size")
      .Input("X")
      .Input("ROIs")
      .Input("RoisNum", kOptional)
      .Input("Images", kOptional)  // of each region; else RoisNum or sequences say it
      .Output("Out")
      .Attr("pooled_height", 1)
      .Attr("pooled_width", 1)
      .Attr("spatial_scale", 1.0)
      .Attr("sampling_ratio", -1)
      .Attr("aligned", false)
      .Attr("mode", "avg")
      .InferShape(InferAlign)
      .KernelKey("X")
      .Kernels<RoiAlign, float, double>()
      .Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_OP(roi_align_grad) {
  op.Input("X", kNoBuffer)
      .Input("ROIs")
      .Input("RoisNum", kOptional)
      .Input("Images", kOptional)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("pooled_height", 1)
      .Attr("pooled_width", 1)
      .Attr("spatial_scale", 1.0)
      .Attr("sampling_ratio", -1)
      .Attr("aligned", false)
      .Attr("mode", "avg")
      .InferShape(InferAlignGrad)
      .Kernels<RoiAlignGrad, float, double>();
}

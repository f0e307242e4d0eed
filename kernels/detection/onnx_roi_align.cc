// Regions of feature maps brought to one size: by samples between pixels, or by their maxima.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

constexpr int64_t kMostBinSamples = 1 << 10;  // along an axis of a bin; as kernels/detection has it

Status OnnxRoiAlignShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X", "rois", "batch_indices"})) return ctx.Defer();
  const Shape &x = ctx.InShape("X"), &rois = ctx.InShape("rois");
  const int64_t h = ctx.Int("output_height"), w = ctx.Int("output_width");
  if (x.rank() != 4 || rois.rank() != 2 || rois[1] != 4 || h < 1 || w < 1 ||
      ctx.InShape("batch_indices").numel() != rois[0])
    return InvalidArgument("X ", x.ToString(), ", rois ", rois.ToString(), " and batch_indices ",
                           ctx.InShape("batch_indices").ToString(), " do not give regions of ", h,
                           " by ", w);
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("batch_indices"), "batch_indices"));
  if (ctx.Int("sampling_ratio") > kMostBinSamples)
    return InvalidArgument("sampling_ratio is ", ctx.Int("sampling_ratio"), ", above the limit of ",
                           kMostBinSamples);
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape({rois[0], x[1], h, w}, "the result"));
  ctx.SetOut("Y", out, ctx.InDType("X"));
  return Status::Ok();
}

// A place between pixels: two neighbours along an axis and the second one's weight.
struct Between {
  int64_t low, high;
  double weight;
  bool inside;
};
Between PlaceOf(double x, int64_t n) {
  if (!(x >= -1 && x <= static_cast<double>(n))) return {0, 0, 0, false};
  x = std::max(x, 0.0);
  const auto low = static_cast<int64_t>(x);
  if (low >= n - 1) return {n - 1, n - 1, 0, true};
  return {low, low + 1, x - static_cast<double>(low), true};
}

template <typename T>
struct OnnxRoiAlign {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &rois = ctx.In("rois"), &images = ctx.In("batch_indices");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&rois}));
    const std::string &mode = ctx.Str("mode"), &pixel = ctx.Str("coordinate_transformation_mode");
    if ((mode != "avg" && mode != "max") || (pixel != "half_pixel" && pixel != "output_half_pixel"))
      return InvalidArgument("mode is '", mode, "' and coordinate_transformation_mode '", pixel,
                             "', expected avg or max, half_pixel or output_half_pixel");
    for (int64_t r = 0; r < rois.dim(0); ++r)
      if (IntAt(images, r) < 0 || IntAt(images, r) >= x.dim(0))
        return OutOfRange("batch_indices holds ", IntAt(images, r), ", X has ", x.dim(0),
                          " images");
    ctx.ParallelFor(rois.dim(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        Region(ctx, rois.data<T>() + r * 4, IntAt(images, r), r);
    });
    return Status::Ok();
  }

  static void Region(const KernelContext& ctx, const T* roi, int64_t image, int64_t r) {
    const Tensor& x = ctx.In("X");
    Tensor& out = ctx.Out("Y");
    const bool half = ctx.Str("coordinate_transformation_mode") == "half_pixel";
    const bool average = ctx.Str("mode") == "avg";
    const double scale = ctx.Float("spatial_scale"), shift = half ? 0.5 : 0;
    const double left = static_cast<double>(roi[0]) * scale - shift;
    const double top = static_cast<double>(roi[1]) * scale - shift;
    double width = static_cast<double>(roi[2]) * scale - shift - left;
    double height = static_cast<double>(roi[3]) * scale - shift - top;
    if (!half) {
      width = std::max(width, 1.0);
      height = std::max(height, 1.0);
    }
    const int64_t rows = out.dim(2), cols = out.dim(3), h = x.dim(2), w = x.dim(3);
    const double bin_h = height / static_cast<double>(rows);
    const double bin_w = width / static_cast<double>(cols);
    const int64_t samples = ctx.Int("sampling_ratio");
    constexpr double kMostByItself = 1 << 20;
    const auto count = [&](double bin) {
      if (samples > 0) return samples;
      return bin > 0 ? static_cast<int64_t>(std::min(std::ceil(bin), kMostByItself)) : int64_t{0};
    };
    const int64_t grid_h = count(bin_h), grid_w = count(bin_w);
    for (const int64_t c : Watched(x.dim(1))) {
      const T* plane = x.data<T>() + (image * x.dim(1) + c) * h * w;
      T* to = out.mutable_data<T>() + (r * x.dim(1) + c) * rows * cols;
      for (int64_t bin = 0; bin < rows * cols; ++bin) {
        double sum = 0, most = 0;
        bool first = true;
        const auto outside = [&] {
          if (average) return;
          most = first ? 0 : std::max(most, 0.0);
          first = false;
        };
        for (const int64_t row : Watched(grid_h)) {
          const double y =
              top +
              (static_cast<double>(bin / cols) + (static_cast<double>(row) + 0.5) / grid_h) * bin_h;
          const Between a = PlaceOf(y, h);
          if (!a.inside || h == 0 || w == 0) {  // so are all samples of the row
            if (grid_w > 0) outside();
            continue;
          }
          for (const int64_t col : Watched(grid_w)) {
            const double z = left + (static_cast<double>(bin % cols) +
                                     (static_cast<double>(col) + 0.5) / grid_w) *
                                        bin_w;
            const Between b = PlaceOf(z, w);
            if (!b.inside) {
              outside();
              continue;
            }
            const double p[4] = {
                (1 - a.weight) * (1 - b.weight) * static_cast<double>(plane[a.low * w + b.low]),
                (1 - a.weight) * b.weight * static_cast<double>(plane[a.low * w + b.high]),
                a.weight * (1 - b.weight) * static_cast<double>(plane[a.high * w + b.low]),
                a.weight * b.weight * static_cast<double>(plane[a.high * w + b.high])};
            sum += p[0] + p[1] + p[2] + p[3];
            // The greatest weighted neighbour, as the operator's text has it.
            const double greatest = std::max(std::max(p[0], p[1]), std::max(p[2], p[3]));
            most = first ? greatest : std::max(most, greatest);
            first = false;
          }
        }
        to[bin] = static_cast<T>(
            average ? sum / static_cast<double>(std::max<int64_t>(1, grid_h * grid_w)) : most);
      }
    }
  }
};

Status OnnxMaxRoiPoolShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X", "rois"})) return ctx.Defer();
  const Shape &x = ctx.InShape("X"), &rois = ctx.InShape("rois");
  const Ints& pooled = ctx.IntList("pooled_shape");
  if (x.rank() != 4 || rois.rank() != 2 || rois[1] != 5 || pooled.size() != 2 || pooled[0] < 1 ||
      pooled[1] < 1)
    return InvalidArgument("X ", x.ToString(), ", rois ", rois.ToString(),
                           " and pooled_shape do not give regions");
  HEDDLE_ASSIGN_OR_RETURN(const Shape out,
                          MakeShape({rois[0], x[1], pooled[0], pooled[1]}, "the result"));
  ctx.SetOut("Y", out, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct OnnxMaxRoiPool {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &rois = ctx.In("rois");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&rois}));
    Tensor& out = ctx.Out("Y");
    const int64_t rows = out.dim(2), cols = out.dim(3), h = x.dim(2), w = x.dim(3);
    const T scale = static_cast<T>(ctx.Float("spatial_scale"));
    T* to = out.template mutable_data<T>();
    for (const int64_t r : Watched(rois.dim(0))) {
      const T* roi = rois.data<T>() + r * 5;
      if (!(roi[0] >= 0 && roi[0] < static_cast<T>(x.dim(0))))
        return OutOfRange("rois names image ", roi[0], ", X has ", x.dim(0));
      const auto image = static_cast<int64_t>(roi[0]);
      int64_t edge[4];
      for (int i = 0; i < 4; ++i) {
        const T at = std::round(roi[i + 1] * scale);
        if (!(std::fabs(at) < T(1e9))) return OutOfRange("rois holds ", roi[i + 1]);
        edge[i] = static_cast<int64_t>(at);
      }
      const int64_t height = std::max<int64_t>(edge[3] - edge[1] + 1, 1);
      const int64_t width = std::max<int64_t>(edge[2] - edge[0] + 1, 1);
      const T bin_h = static_cast<T>(height) / static_cast<T>(rows);
      const T bin_w = static_cast<T>(width) / static_cast<T>(cols);
      const auto from = [](T bin, int64_t i, int64_t start, int64_t n) {
        return std::clamp<int64_t>(
            static_cast<int64_t>(std::floor(static_cast<T>(i) * bin)) + start, 0, n);
      };
      const auto until = [](T bin, int64_t i, int64_t start, int64_t n) {
        return std::clamp<int64_t>(
            static_cast<int64_t>(std::ceil(static_cast<T>(i + 1) * bin)) + start, 0, n);
      };
      for (int64_t c = 0; c < x.dim(1); ++c) {
        const T* plane = x.data<T>() + (image * x.dim(1) + c) * h * w;
        for (int64_t p = 0; p < rows; ++p)
          for (int64_t q = 0; q < cols; ++q) {
            const int64_t y0 = from(bin_h, p, edge[1], h), y1 = until(bin_h, p, edge[1], h);
            const int64_t x0 = from(bin_w, q, edge[0], w), x1 = until(bin_w, q, edge[0], w);
            T best = y1 <= y0 || x1 <= x0 ? T(0) : plane[y0 * w + x0];
            for (int64_t y = y0; y < y1; ++y)
              for (int64_t k = x0; k < x1; ++k) best = std::max(best, plane[y * w + k]);
            *to++ = best;
          }
      }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_roi_align) {
  op.Doc("regions of feature maps sampled between pixels to a fixed size");
  op.Input("X").Input("rois").Input("batch_indices").Output("Y");
  op.Attr("mode", "avg").Attr("coordinate_transformation_mode", "half_pixel");
  op.Attr("output_height", 1).Attr("output_width", 1).Attr("sampling_ratio", 0);
  op.Attr("spatial_scale", 1.0).InferShape(OnnxRoiAlignShape);
  op.Kernels<OnnxRoiAlign, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_max_roi_pool) {
  op.Doc("greatest elements of the parts of regions").Input("X").Input("rois").Output("Y");
  op.Attr("pooled_shape", Ints{}).Attr("spatial_scale", 1.0).InferShape(OnnxMaxRoiPoolShape);
  op.Kernels<OnnxMaxRoiPool, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

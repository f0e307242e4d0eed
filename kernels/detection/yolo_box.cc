// yolo_box: boxes and scores out of a YOLO head.
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferBoxes(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const auto anchors = static_cast<int64_t>(ctx.IntList("anchors").size()) / 2;
  const int64_t classes = ctx.Int("class_num");
  if (!x.is_static()) return ctx.Defer();
  const int64_t entries = classes + (ctx.Bool("iou_aware") ? 6 : 5);
  if (x.rank() != 4 || anchors < 1 || classes < 1 || x[1] != anchors * entries)
    return InvalidArgument("X ", x.ToString(), " does not fit ", anchors, " anchors of ", entries,
                           " values");
  const int64_t boxes = x[2] * x[3] * anchors;
  ctx.SetOut("Boxes", Shape{x[0], boxes, 4}, ctx.InDType("X"));
  ctx.SetOut("Scores", Shape{x[0], boxes, classes}, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
T Sigmoid(T x) {
  return static_cast<T>(1.0 / (1.0 + std::exp(-x)));
}

// One head: where the values of a cell lie, and how they become a box.
template <typename T>
struct Head {
  int64_t anchors, classes, h, w, input_h, input_w;
  const Ints& sizes;
  float scale, bias, threshold, factor;
  bool clip, iou_aware;

  Head(const OpContext& ctx, const Tensor& x)
      : anchors(static_cast<int64_t>(ctx.IntList("anchors").size()) / 2),
        classes(ctx.Int("class_num")),
        h(x.dim(2)),
        w(x.dim(3)),
        input_h(ctx.Int("downsample_ratio") * h),
        input_w(ctx.Int("downsample_ratio") * w),
        sizes(ctx.IntList("anchors")),
        scale(static_cast<float>(ctx.Float("scale_x_y"))),
        bias(-0.5f * (scale - 1.f)),
        threshold(static_cast<float>(ctx.Float("conf_thresh"))),
        factor(static_cast<float>(ctx.Float("iou_aware_factor"))),
        clip(ctx.Bool("clip_bbox")),
        iou_aware(ctx.Bool("iou_aware")) {}

  T Confidence(const T* entry, const T* iou) const {
    const T objectness = Sigmoid(entry[4 * h * w]);
    if (!iou_aware) return objectness;
    return std::pow(objectness, static_cast<T>(1. - factor)) *
           std::pow(Sigmoid(*iou), static_cast<T>(factor));
  }

  void Box(const T* entry, int64_t a, int64_t row, int64_t col, int64_t image_h, int64_t image_w,
           T* out) const {
    const int64_t plane = h * w;
    const T x = (static_cast<T>(col) + Sigmoid(entry[0]) * scale + bias) * static_cast<T>(image_w) /
                static_cast<T>(w);
    const T y = (static_cast<T>(row) + Sigmoid(entry[plane]) * scale + bias) *
                static_cast<T>(image_h) / static_cast<T>(h);
    const T bw = std::exp(entry[2 * plane]) * static_cast<T>(sizes[static_cast<size_t>(2 * a)]) *
                 static_cast<T>(image_w) / static_cast<T>(input_w);
    const T bh = std::exp(entry[3 * plane]) *
                 static_cast<T>(sizes[static_cast<size_t>(2 * a + 1)]) * static_cast<T>(image_h) /
                 static_cast<T>(input_h);
    const T corners[4] = {x - bw / 2, y - bh / 2, x + bw / 2, y + bh / 2};
    WatchedCopy(corners, 4, out);
    if (!clip) return;
    const T right = static_cast<T>(image_w - 1), bottom = static_cast<T>(image_h - 1);
    out[0] = out[0] > 0 ? out[0] : T(0);
    out[1] = out[1] > 0 ? out[1] : T(0);
    out[2] = out[2] < right ? out[2] : right;
    out[3] = out[3] < bottom ? out[3] : bottom;
  }
};

template <typename T>
struct YoloBox {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &image = ctx.In("ImgSize");
    Tensor &boxes = ctx.Out("Boxes"), &scores = ctx.Out("Scores");
    const Head<T> head(ctx, x);
    if (image.numel() != x.dim(0) * 2 || image.dtype() != DType::kI32)
      return InvalidArgument("ImgSize must be int32 [", x.dim(0), ", 2], not ",
                             image.shape().ToString());
    if (boxes.bytes() > 0) WatchedMemset(boxes.mutable_raw(), 0, boxes.bytes());
    if (scores.bytes() > 0) WatchedMemset(scores.mutable_raw(), 0, scores.bytes());
    const int64_t plane = head.h * head.w;
    const int64_t entries = head.classes + 5 + (head.iou_aware ? 1 : 0);
    ctx.ParallelFor(x.dim(0) * head.anchors, 1, [&](int64_t begin, int64_t end) {
      for (int64_t na = begin; na < end; ++na) {
        const int64_t n = na / head.anchors, a = na % head.anchors;
        const T* from = x.data<T>() + n * head.anchors * entries * plane;
        const T* iou = from + a * plane;  // overlap predictions come before all anchors' values
        if (head.iou_aware) from += head.anchors * plane;
        from += a * (head.classes + 5) * plane;
        const int32_t* size = image.data<int32_t>() + 2 * n;
        OneAnchor(head, from, iou, a, size, boxes.mutable_data<T>() + na * plane * 4,
                  scores.mutable_data<T>() + na * plane * head.classes);
      }
    });
    return Status::Ok();
  }

  static void OneAnchor(const Head<T>& head, const T* from, const T* iou, int64_t a,
                        const int32_t* size, T* boxes, T* scores) {
    const int64_t plane = head.h * head.w;
    for (const int64_t i : Watched(plane)) {
      const T confidence = head.Confidence(from + i, iou + i);
      if (confidence < head.threshold) continue;
      head.Box(from + i, a, i / head.w, i % head.w, size[0], size[1], boxes + i * 4);
      for (int64_t c = 0; c < head.classes; ++c)
        scores[i * head.classes + c] = confidence * Sigmoid(from[(5 + c) * plane + i]);
    }
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(yolo_box) {
  op.Doc("boxes and scores out of a YOLO head").Input("X").Input("ImgSize");
  op.Output("Boxes").Output("Scores").Attr("anchors", Ints{}).Attr("class_num", 1);
  op.Attr("conf_thresh", 0.01).Attr("downsample_ratio", 32).Attr("clip_bbox", true);
  op.Attr("scale_x_y", 1.0).Attr("iou_aware", false).Attr("iou_aware_factor", 0.5);
  op.InferShape(InferBoxes).Kernels<YoloBox, float, double>();
}

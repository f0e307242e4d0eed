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

HEDDLE_EXAMPLES(yolo_box, R"(
example float32 1x6x2x2, anchors 10 13, no clip_bbox, conf_thresh 0.5, scale_x_y 1.2
attr anchors INTS [10, 13]
attr clip_bbox BOOLEAN false
attr conf_thresh FLOAT 0.5
attr scale_x_y FLOAT 1.2
in ImgSize int32 [1, 2] 59 88
in X float32 [1, 6, 2, 2] -1.05 1.46 -1.35 -0.91 1.6 1.16 -1.5 0.72 0.87 0.57 0.27 -0.32 0.42 -1.2
  -0.17 -0.02 -0.46 -0.61 0.13 1.31 -1.65 -1.79 -0.76 1.01
out Boxes float32 [1, 4, 4] 0*8 -2.5360508 27.952469 15.47596 38.063263 49.761314 44.48675 59.745865
  56.23382
out Scores float32 [1, 4, 1] 0 0 0.16966459 0.577263

example float32 1x7x2x4, anchors 10 13, class_num 2, no clip_bbox, downsample_ratio 8
attr anchors INTS [10, 13]
attr class_num INT 2
attr clip_bbox BOOLEAN false
attr downsample_ratio INT 8
attr scale_x_y FLOAT 1.2
in ImgSize int32 [1, 2] 87 44
in X float32 [1, 7, 2, 4] -0.35 -1.69 0.74 -0.86 0.42 0.54 0.23 -0.73 -0.54 0.99 1.25 -1.62 1.37
  1.63 0.48 -1.37 1.56 -0.22 0.86 -0.48 0.61 1.18 0.35 -0.99 1.31 -1.3 -1.05 0.93 -1.43 -0.16 0.29
  0.67 -1.24 -0.09 0.03 1.05 0.16 -0.28 -0.6 -0.03 -1.75 0.1 -1.56 -0.79 0.8 -1.5 -0.67 1.44 1.69
  1.5 -1.18 1.12 1.76 -0.92 -1.11 -0.41
out Boxes float32 [1, 8, 4] -28.360249 -116.120674 37.073544 145.85945 6.4389243 24.076097 17.473557
  43.34069 13.589617 23.85694 46.083076 48.593163 31.570747 -85.30537 40.079018 93.85276 -5.786987
  72.31517 19.518944 89.23132 -4.133898 52.6801 40.613747 112.916016 18.499584 24.162083 38.01176
  118.6308 33.63798 -19.343323 38.747158 118.79683
out Scores float32 [1, 8, 2] 0.03322712 0.18947428 0.25068554 0.39040425 0.08812559 0.11928887
  0.2312467 0.55853593 0.3725275 0.4606606 0.07852576 0.122661196 0.119944215 0.08783148 0.39816436
  0.19646443

example float64 1x6x2x2, anchors 10 13, no clip_bbox, conf_thresh 0.5, scale_x_y 1.2
attr anchors INTS [10, 13]
attr clip_bbox BOOLEAN false
attr conf_thresh FLOAT 0.5
attr scale_x_y FLOAT 1.2
in ImgSize int32 [1, 2] 59 88
in X float64 [1, 6, 2, 2] -1.05 1.46 -1.35 -0.91 1.6 1.16 -1.5 0.72 0.87 0.57 0.27 -0.32 0.42 -1.2
  -0.17 -0.02 -0.46 -0.61 0.13 1.31 -1.65 -1.79 -0.76 1.01
out Boxes float64 [1, 4, 4] 0*8 -2.5360505848095745 27.952465327824005 15.475960612772576
  38.06326086422129 49.76131632990577 44.48675440929444 59.74586558966902 56.233822884705084
out Scores float64 [1, 4, 1] 0 0 0.16966457665827334 0.57726301104886
)")

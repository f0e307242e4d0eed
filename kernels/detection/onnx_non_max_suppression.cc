#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/check.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// Corners in order, whichever way the box was given.
struct Corners {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

Corners CornersOf(const float* box, bool centered) {
  if (centered) {
    const float half_w = box[2] / 2, half_h = box[3] / 2;
    return {box[1] - half_h, box[0] - half_w, box[1] + half_h, box[0] + half_w};
  }
  return {std::min(box[0], box[2]), std::min(box[1], box[3]), std::max(box[0], box[2]),
          std::max(box[1], box[3])};
}

bool CornerOverlap(const Corners& a, const Corners& b, float threshold) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return false;
  const float common = height * width, both = a.area() + b.area() - common;
  return a.area() > 0 && b.area() > 0 && both > 0 && common / both > threshold;
}

Status OnnxNms(KernelContext& ctx) {
  const Tensor &boxes = ctx.In("boxes"), &scores = ctx.In("scores");
  const Shape &b = boxes.shape(), &s = scores.shape();
  if (b.rank() != 3 || s.rank() != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2])
    return InvalidArgument("boxes ", b.ToString(), " and scores ", s.ToString(),
                           " do not fit each other");
  HEDDLE_RETURN_IF_ERROR(CheckDType(DType::kF32, {&scores}));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t most, IntIn(ctx, "max_output_boxes_per_class", 0));
  HEDDLE_ASSIGN_OR_RETURN(const double iou, NumberIn(ctx, "iou_threshold", 0));
  HEDDLE_ASSIGN_OR_RETURN(const double least, NumberIn(ctx, "score_threshold",
                                                       -std::numeric_limits<double>::infinity()));
  const bool has_least = Has(ctx, "score_threshold"), centered = ctx.Int("center_point_box") != 0;
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> selected(&heap);
  for (int64_t pair = 0; most > 0 && pair < s[0] * s[1]; ++pair) {
    HEDDLE_RETURN_IF_ERROR(ctx.Interrupted());
    const int64_t batch = pair / s[1];
    const float* score = scores.data<float>() + pair * s[2];
    CallHeap own(ctx);
    std::pmr::vector<int64_t> order(&own);
    order.reserve(static_cast<size_t>(s[2]));
    for (int64_t i = 0; i < s[2]; ++i)
      if (!has_least || score[i] > static_cast<float>(least)) order.push_back(i);
    LookCount looks;
    std::sort(order.begin(), order.end(), looks.In([&](int64_t x, int64_t y) {
      if (Greater(score[x], score[y])) return true;
      return Greater(score[y], score[x]) ? false : x < y;
    }));
    std::pmr::vector<Corners> kept(&own);
    kept.reserve(order.size());
    for (const int64_t i : order) {
      LookForInterrupt();
      if (static_cast<int64_t>(kept.size()) == most) break;
      const Corners box = CornersOf(boxes.data<float>() + (batch * b[1] + i) * 4, centered);
      const bool covered = std::any_of(kept.begin(), kept.end(), [&](const Corners& k) {
        return CornerOverlap(box, k, static_cast<float>(iou));
      });
      if (covered) continue;
      kept.push_back(box);
      if (kept.size() % 256 == 0) HEDDLE_RETURN_IF_ERROR(ctx.Interrupted());
      selected.insert(selected.end(), {batch, pair % s[1], i});
    }
  }
  Tensor& out =
      ctx.Alloc("selected_indices", DType::kI64, {static_cast<int64_t>(selected.size()) / 3, 3});
  std::copy(selected.begin(), selected.end(), out.mutable_data<int64_t>());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_non_max_suppression) {
  op.Doc("batch, class and number of the boxes that no better one of their class covers");
  op.Input("boxes").Input("scores").Input("max_output_boxes_per_class", kOptional);
  op.Input("iou_threshold", kOptional).Input("score_threshold", kOptional);
  op.Output("selected_indices").Attr("center_point_box", 0).Kernel(DType::kF32, OnnxNms);
}

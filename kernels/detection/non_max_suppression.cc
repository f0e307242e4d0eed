// The choice of boxes that better ones do not cover.
#include <array>
#include <cmath>
#include <functional>
#include <memory_resource>
#include <queue>
#include <vector>

#include "core/interrupts.h"
#include "core/threads/look_meter.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/check.h"
#include "kernels/operands/narrow.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// The part of two boxes' union that both cover; corners in any order.
float OverlapRatio(const float* a, const float* b) {
  const float ay0 = std::min(a[0], a[2]), ay1 = std::max(a[0], a[2]);
  const float ax0 = std::min(a[1], a[3]), ax1 = std::max(a[1], a[3]);
  const float by0 = std::min(b[0], b[2]), by1 = std::max(b[0], b[2]);
  const float bx0 = std::min(b[1], b[3]), bx1 = std::max(b[1], b[3]);
  const float area_a = (ay1 - ay0) * (ax1 - ax0), area_b = (by1 - by0) * (bx1 - bx0);
  if (area_a <= 0 || area_b <= 0) return 0;
  const float shared = std::max(std::min(ay1, by1) - std::max(ay0, by0), 0.0F) *
                       std::max(std::min(ax1, bx1) - std::max(ax0, bx0), 0.0F);
  return shared / (area_a + area_b - shared);
}

struct RankedBox {
  int64_t box;
  float score;
  size_t checked;  // against so many of the boxes that were chosen
  bool operator<(const RankedBox& o) const {
    return score < o.score || (score == o.score && box > o.box);
  }
};

struct NmsLimits {
  int64_t most = 0;
  float overlap = 0, score = -std::numeric_limits<float>::infinity(), sigma = 0;
};

// The best boxes, in order; overlap with better ones takes a box out or (sigma > 0) its score down.
// box(i): its four corners, score(i).
template <typename Box, typename Score>
std::pmr::vector<RankedBox> SuppressBoxes(const NmsLimits& limits, int64_t n, Box box, Score score,
                                          CallHeap* heap) {
  using Candidates = std::pmr::vector<RankedBox>;
  Candidates room(heap);
  room.reserve(static_cast<size_t>(n));
  std::priority_queue<RankedBox, Candidates> queue(std::less<RankedBox>(), std::move(room));
  for (const auto some : Stretches(n))
    for (int64_t i = some.begin; i < some.end; ++i)
      if (score(i) > limits.score) queue.push({i, score(i), 0});
  Candidates chosen(heap);
  chosen.reserve(static_cast<size_t>(std::min(limits.most, n)));
  LookMeter meter;
  while (static_cast<int64_t>(chosen.size()) < std::min(limits.most, n) && !queue.empty()) {
    meter.Did(64);
    RankedBox next = queue.top();
    queue.pop();
    const float before = next.score;
    bool out = false;
    for (size_t j = chosen.size(); j-- > next.checked && !out;) {
      meter.Did(8);
      const float shared = OverlapRatio(box(next.box), box(chosen[j].box));
      if (limits.sigma > 0) {
        next.score *=
            shared <= limits.overlap ? std::exp(-0.5F / limits.sigma * shared * shared) : 0;
        if (next.score <= limits.score) break;
      } else {
        out = shared > limits.overlap;
      }
    }
    if (out) continue;
    next.checked = chosen.size();
    if (next.score == before)
      chosen.push_back(next);
    else if (next.score > limits.score)
      queue.push(next);
  }
  return chosen;
}

Result<float> FloatIn(const KernelContext& ctx, Key key, double absent) {
  HEDDLE_ASSIGN_OR_RETURN(const double v, NumberIn(ctx, key, absent));
  return static_cast<float>(v);
}

// The corners of a box, which with center_point_box has its centre and sizes instead, x first.
std::array<float, 4> CornersOf(const float* box, bool centered) {
  if (!centered) return {box[0], box[1], box[2], box[3]};
  const float half_w = box[2] / 2, half_h = box[3] / 2;
  return {box[1] - half_h, box[0] - half_w, box[1] + half_h, box[0] + half_w};
}

// Of each class of each image: batch, class and number of the boxes that no better one covers.
Status SuppressByClass(KernelContext& ctx) {
  const Tensor &boxes = ctx.In("boxes"), &scores = ctx.In("scores");
  const Shape &b = boxes.shape(), &s = scores.shape();
  if (b.rank() != 3 || s.rank() != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2])
    return InvalidArgument("boxes ", b.ToString(), " and scores ", s.ToString(),
                           " do not fit each other");
  HEDDLE_RETURN_IF_ERROR(CheckDType(DType::kF32, {&scores}));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t most, IntIn(ctx, "max_output_size", 0));
  HEDDLE_ASSIGN_OR_RETURN(const double iou, NumberIn(ctx, "iou_threshold", 0.5));
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
    std::pmr::vector<std::array<float, 4>> kept(&own);
    kept.reserve(order.size());
    for (const int64_t i : order) {
      LookForInterrupt();
      if (static_cast<int64_t>(kept.size()) == most) break;
      const auto box = CornersOf(boxes.data<float>() + (batch * b[1] + i) * 4, centered);
      const bool covered = std::any_of(kept.begin(), kept.end(), [&](const auto& k) {
        return OverlapRatio(box.data(), k.data()) > static_cast<float>(iou);
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

Status NonMaxSuppression(KernelContext& ctx) {
  const Tensor &boxes = ctx.In("boxes"), &scores = ctx.In("scores");
  if (boxes.rank() == 3) return SuppressByClass(ctx);
  if (boxes.rank() != 2 || boxes.dim(1) != 4 || scores.rank() != 1 ||
      scores.dim(0) != boxes.dim(0) || scores.dtype() != DType::kF32)
    return InvalidArgument(
        "boxes has shape ", boxes.shape().ToString(), " and scores ", scores.shape().ToString(),
        ", expected [n, 4] and [n], or [batch, n, 4] and [batch, classes, n], of "
        "float32");
  NmsLimits limits;
  HEDDLE_ASSIGN_OR_RETURN(limits.most, IntIn(ctx, "max_output_size", 0));
  HEDDLE_ASSIGN_OR_RETURN(limits.overlap, FloatIn(ctx, "iou_threshold", 0.5));
  HEDDLE_ASSIGN_OR_RETURN(
      limits.score, FloatIn(ctx, "score_threshold", -std::numeric_limits<double>::infinity()));
  HEDDLE_ASSIGN_OR_RETURN(limits.sigma, FloatIn(ctx, "soft_nms_sigma", 0));
  if (limits.most < 0 || !(limits.overlap >= 0 && limits.overlap <= 1) || limits.sigma < 0)
    return InvalidArgument("max_output_size is ", limits.most, ", iou_threshold ", limits.overlap,
                           " and soft_nms_sigma ", limits.sigma);
  CallHeap heap(ctx);
  const auto chosen = SuppressBoxes(
      limits, boxes.dim(0), [&](int64_t i) { return boxes.data<float>() + i * 4; },
      [&](int64_t i) { return scores.data<float>()[i]; }, &heap);
  const bool pads = ctx.Bool("pad_to_max_output_size");
  const int64_t n = pads ? limits.most : static_cast<int64_t>(chosen.size());
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape({n}, "max_output_size"));
  Tensor& indices = ctx.Alloc("selected_indices", DType::kI32, shape);
  ZeroBytes(ctx, indices.mutable_raw(), indices.bytes());
  for (size_t i = 0; i < chosen.size(); ++i)
    indices.mutable_data<int32_t>()[i] = static_cast<int32_t>(chosen[i].box);
  if (ctx.HasOut("selected_scores")) {
    Tensor& out = ctx.Alloc("selected_scores", DType::kF32, shape);
    ZeroBytes(ctx, out.mutable_raw(), out.bytes());
    for (size_t i = 0; i < chosen.size(); ++i) out.mutable_data<float>()[i] = chosen[i].score;
  }
  if (ctx.HasOut("valid_outputs"))
    *ctx.Alloc("valid_outputs", DType::kI32, Shape()).mutable_data<int32_t>() =
        static_cast<int32_t>(chosen.size());
  return Status::Ok();
}

// For each image: the best boxes of all classes.
Status Combined(KernelContext& ctx) {
  const Tensor &boxes = ctx.In("boxes"), &scores = ctx.In("scores");
  if (boxes.rank() != 4 || boxes.dim(3) != 4 || scores.rank() != 3 ||
      scores.dim(0) != boxes.dim(0) || scores.dim(1) != boxes.dim(1) ||
      (boxes.dim(2) != 1 && boxes.dim(2) != scores.dim(2)) || scores.dtype() != DType::kF32)
    return InvalidArgument("boxes has shape ", boxes.shape().ToString(), " and scores ",
                           scores.shape().ToString(),
                           ", expected [batch, n, 1 or classes, 4] and [batch, n, classes]");
  NmsLimits limits;
  HEDDLE_ASSIGN_OR_RETURN(limits.most, IntIn(ctx, "max_output_size_per_class", 0));
  HEDDLE_ASSIGN_OR_RETURN(int64_t total, IntIn(ctx, "max_total_size", 0));
  HEDDLE_ASSIGN_OR_RETURN(limits.overlap, FloatIn(ctx, "iou_threshold", 0.5));
  HEDDLE_ASSIGN_OR_RETURN(limits.score, FloatIn(ctx, "score_threshold", 0));
  if (limits.most < 1 || total < 1)
    return InvalidArgument("max_output_size_per_class is ", limits.most, " and max_total_size ",
                           total, ", expected at least 1");
  const int64_t batch = boxes.dim(0), n = boxes.dim(1), q = boxes.dim(2), classes = scores.dim(2);
  if (ctx.Bool("pad_per_class"))
    total = std::min(total, std::min(limits.most, int64_t{1} << 31) * classes);
  HEDDLE_ASSIGN_OR_RETURN(const Shape rows, MakeShape({batch, total}, "nmsed_scores"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape quads, MakeShape({batch, total, 4}, "nmsed_boxes"));
  Tensor& out = ctx.Alloc("nmsed_boxes", DType::kF32, quads);
  Tensor& out_scores = ctx.Alloc("nmsed_scores", DType::kF32, rows);
  Tensor& out_classes = ctx.Alloc("nmsed_classes", DType::kF32, rows);
  Tensor& valid = ctx.Alloc("valid_detections", DType::kI32, Shape{batch});
  for (Tensor* t : {&out, &out_scores, &out_classes}) ZeroBytes(ctx, t->mutable_raw(), t->bytes());
  struct Detection {
    float score;
    int64_t of_class;
    const float* box;
  };
  for (const int64_t b : Watched(batch)) {
    CallHeap heap(ctx);
    std::pmr::vector<Detection> found(&heap);
    for (int64_t c = 0; c < classes && n > 0; ++c) {
      const auto box = [&](int64_t i) {
        return boxes.data<float>() + ((b * n + i) * q + (q > 1 ? c : 0)) * 4;
      };
      const auto score = [&](int64_t i) { return scores.data<float>()[(b * n + i) * classes + c]; };
      CallHeap of_class(ctx);
      for (const RankedBox& each : SuppressBoxes(limits, n, box, score, &of_class))
        found.push_back({each.score, c, box(each.box)});
    }
    LookCount looks;
    std::stable_sort(found.begin(), found.end(),
                     looks.In([](const auto& x, const auto& y) { return x.score > y.score; }));
    const auto count = std::min<int64_t>(total, static_cast<int64_t>(found.size()));
    for (int64_t i = 0; i < count; ++i) {
      const Detection& d = found[static_cast<size_t>(i)];
      for (int k = 0; k < 4; ++k)
        out.mutable_data<float>()[(b * total + i) * 4 + k] =
            ctx.Bool("clip_boxes") ? std::clamp(d.box[k], 0.0F, 1.0F) : d.box[k];
      out_scores.mutable_data<float>()[b * total + i] = d.score;
      out_classes.mutable_data<float>()[b * total + i] = static_cast<float>(d.of_class);
    }
    valid.mutable_data<int32_t>()[b] = static_cast<int32_t>(count);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(non_max_suppression) {
  op.Doc(
      "the best boxes that do not overlap better ones, of one list or of each class of each image "
      "(as batch, class and number); soft_nms_sigma lowers scores of a list instead");
  op.Input("boxes").Input("scores").Input("max_output_size", kOptional);
  op.Input("iou_threshold", kOptional).Input("score_threshold", kOptional);
  op.Input("soft_nms_sigma", kOptional).Output("selected_indices");
  op.Output("selected_scores", kOptional).Output("valid_outputs", kOptional);
  op.Attr("pad_to_max_output_size", false).Attr("center_point_box", 0).KernelKey("boxes");
  op.Kernel(DType::kF32, NonMaxSuppression).Kernel({DType::kF16, DType::kBF16}, RunInFloatAlloc);
}
HEDDLE_OP(combined_non_max_suppression) {
  op.Doc("the best boxes of all classes of each image").Input("boxes").Input("scores");
  op.Input("max_output_size_per_class").Input("max_total_size").Input("iou_threshold");
  op.Input("score_threshold").Output("nmsed_boxes").Output("nmsed_scores");
  op.Output("nmsed_classes").Output("valid_detections").Attr("pad_per_class", false);
  op.Attr("clip_boxes", true).KernelKey("boxes").Kernel(DType::kF32, Combined);
}

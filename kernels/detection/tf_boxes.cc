// Boxes of images: crops of one size, and the choice of those that do not cover each other.
#include <cmath>
#include <functional>
#include <memory_resource>
#include <queue>
#include <span>
#include <vector>

#include "core/interrupts.h"
#include "core/threads/look_meter.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/narrow.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status CropShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("image"), &boxes = ctx.InShape("boxes");
  if (!x.known_rank() || !boxes.known_rank()) return ctx.Defer();
  if (x.rank() != 4 || boxes.rank() != 2 || (boxes[1] >= 0 && boxes[1] != 4))
    return InvalidArgument("image has shape ", x.ToString(), " and boxes ", boxes.ToString(),
                           ", expected rank 4 and [?, 4]");
  Shape out{boxes[0], -1, -1, x[3]};
  if (Known(ctx, "crop_size")) {
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts size, IntsIn(ctx, "crop_size"));
    if (size.size() != 2 || size[0] < 1 || size[1] < 1)
      return InvalidArgument("crop_size has ", size.size(), " elements, expected two above 0");
    out[1] = size[0];
    out[2] = size[1];
  }
  ctx.SetOut("crops", out, DType::kF32);
  return Status::Ok();
}

// Positions of a crop along one side, of which some lie outside the image.
void FindCropPositions(float from, float to, int64_t side, std::span<float> at) {
  const auto crop = std::ssize(at);
  const auto last = static_cast<float>(side - 1);
  const float step = crop > 1 ? (to - from) * last / static_cast<float>(crop - 1) : 0;
  for (int64_t i = 0; i < crop; ++i)
    at[static_cast<size_t>(i)] =
        crop > 1 ? from * last + static_cast<float>(i) * step : 0.5F * (from + to) * last;
}

Status CropAndResize(KernelContext& ctx) {
  const Tensor x = InFloat(ctx, ctx.In("image"));
  const Tensor &boxes = ctx.In("boxes"), &images = ctx.In("box_ind");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(images.dtype(), "box_ind"));
  const std::string& method = ctx.Str("method");
  const bool nearest = method == "nearest";
  if (!nearest && method != "bilinear")
    return InvalidArgument("method is '", method, "', expected bilinear or nearest");
  if (images.numel() != boxes.dim(0) || boxes.dtype() != DType::kF32)
    return InvalidArgument("box_ind has ", images.numel(), " elements and boxes is ",
                           Name(boxes.dtype()), " ", boxes.shape().ToString());
  Tensor& out = ctx.Out("crops");
  const int64_t h = x.dim(1), w = x.dim(2), c = x.dim(3), ch = out.dim(1), cw = out.dim(2);
  for (const auto part : Stretches(images.numel()))
    for (int64_t b = part.begin; b < part.end; ++b)
      if (const int64_t i = IntAt(images, b); i < 0 || i >= x.dim(0))
        return OutOfRange("box_ind holds ", i, " at position ", b, ", expected 0 to ",
                          x.dim(0) - 1);
  if (out.numel() == 0) return Status::Ok();
  if (h == 0 || w == 0) return InvalidArgument("image has no pixels");
  const auto outside = static_cast<float>(ctx.Float("extrapolation_value"));
  const float* from = x.data<float>();
  float* to = out.mutable_data<float>();
  ctx.ParallelFor(boxes.dim(0), 1, [&](int64_t begin, int64_t end) {
    CallHeap heap(ctx);  // of the thread
    std::pmr::vector<float> ys(static_cast<size_t>(ch), &heap), xs(static_cast<size_t>(cw), &heap);
    for (int64_t b = begin; b < end; ++b) {
      const float* box = boxes.data<float>() + b * 4;
      FindCropPositions(box[0], box[2], h, ys);
      FindCropPositions(box[1], box[3], w, xs);
      const float* image = from + IntAt(images, b) * h * w * c;
      for (int64_t i = 0; i < ch * cw; ++i) {
        const float py = ys[static_cast<size_t>(i / cw)], px = xs[static_cast<size_t>(i % cw)];
        float* pixel = to + (b * ch * cw + i) * c;
        if (!(py >= 0 && py <= static_cast<float>(h - 1) && px >= 0 &&
              px <= static_cast<float>(w - 1))) {
          std::fill(pixel, pixel + c, outside);
          continue;
        }
        if (nearest) {
          const int64_t iy = std::min(static_cast<int64_t>(std::round(py)), h - 1),
                        ix = std::min(static_cast<int64_t>(std::round(px)), w - 1);
          std::copy_n(image + (iy * w + ix) * c, c, pixel);
          continue;
        }
        // The last position as float may lie behind the image where that has more than 2^24.
        const int64_t y0 = std::min(static_cast<int64_t>(std::floor(py)), h - 1),
                      y1 = std::min(static_cast<int64_t>(std::ceil(py)), h - 1);
        const int64_t x0 = std::min(static_cast<int64_t>(std::floor(px)), w - 1),
                      x1 = std::min(static_cast<int64_t>(std::ceil(px)), w - 1);
        const float dy = py - static_cast<float>(y0), dx = px - static_cast<float>(x0);
        for (int64_t k = 0; k < c; ++k) {
          const auto at = [&](int64_t yy, int64_t xx) { return image[(yy * w + xx) * c + k]; };
          const float top = at(y0, x0) + (at(y0, x1) - at(y0, x0)) * dx;
          const float bottom = at(y1, x0) + (at(y1, x1) - at(y1, x0)) * dx;
          pixel[k] = top + (bottom - top) * dy;
        }
      }
    }
  });
  return Status::Ok();
}

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

Status NonMaxSuppression(KernelContext& ctx) {
  const Tensor &boxes = ctx.In("boxes"), &scores = ctx.In("scores");
  if (boxes.rank() != 2 || boxes.dim(1) != 4 || scores.rank() != 1 ||
      scores.dim(0) != boxes.dim(0) || scores.dtype() != DType::kF32)
    return InvalidArgument("boxes has shape ", boxes.shape().ToString(), " and scores ",
                           scores.shape().ToString(), ", expected [n, 4] and [n] of float32");
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

// The pixels of windows as channels, zeros outside the image.
constexpr int64_t kMostStep = int64_t{1} << 31;
struct Patches {
  int64_t size[2], stride[2], rate[2], pad[2], out[2];
};
Result<Patches> PatchesOf(const OpContext& ctx, const Shape& x) {
  Patches p;
  const Ints &sizes = ctx.IntList("ksizes"), &strides = ctx.IntList("strides"),
             &rates = ctx.IntList("rates");
  const std::string& padding = ctx.Str("padding");
  if (x.rank() != 4 || sizes.size() != 4 || strides.size() != 4 || rates.size() != 4 ||
      (padding != "SAME" && padding != "VALID"))
    return InvalidArgument("images has shape ", x.ToString(),
                           "; four numbers of ksizes, strides and rates and padding SAME or VALID "
                           "are expected");
  for (int i = 0; i < 2; ++i) {
    const auto k = static_cast<size_t>(i) + 1;
    p.size[i] = sizes[k];
    p.stride[i] = strides[k];
    p.rate[i] = rates[k];
    if (p.size[i] < 1 || p.stride[i] < 1 || p.rate[i] < 1 || p.size[i] > 1 << 15 ||
        p.stride[i] > kMostStep || p.rate[i] > kMostStep)
      return InvalidArgument("ksizes, strides and rates hold ", p.size[i], ", ", p.stride[i],
                             " and ", p.rate[i], ", expected at least 1");
    const int64_t in = x[i + 1], reach = (p.size[i] - 1) * p.rate[i] + 1;
    const bool same = padding == "SAME";
    p.out[i] = same ? (in + p.stride[i] - 1) / p.stride[i]
                    : std::max<int64_t>(0, (in - reach + p.stride[i]) / p.stride[i]);
    const int64_t total = std::max<int64_t>(0, (p.out[i] - 1) * p.stride[i] + reach - in);
    p.pad[i] = same ? total / 2 : 0;
  }
  return p;
}
Status PatchShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("images");
  if (!x.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Patches p, PatchesOf(ctx, x));
  HEDDLE_ASSIGN_OR_RETURN(
      const Shape out,
      MakeShape({x[0], p.out[0], p.out[1], p.size[0] * p.size[1] * x[3]}, "patches"));
  ctx.SetOut("patches", out, ctx.InDType("images"));
  return Status::Ok();
}
Status ExtractPatches(KernelContext& ctx) {
  const Tensor& x = ctx.In("images");
  HEDDLE_ASSIGN_OR_RETURN(const Patches p, PatchesOf(ctx, x.shape()));
  Tensor& out = ctx.Out("patches");
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  const int64_t h = x.dim(1), w = x.dim(2);
  const int64_t row = x.dim(3) * static_cast<int64_t>(SizeOf(x.dtype()));
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  const int64_t taps = p.size[0] * p.size[1];
  for (const int64_t i : Watched(row > 0 ? x.dim(0) * p.out[0] * p.out[1] * taps : 0)) {
    const int64_t tap = i % taps, place = i / taps;
    const int64_t ox = place % p.out[1], oy = place / p.out[1] % p.out[0];
    const int64_t n = place / (p.out[0] * p.out[1]);
    const int64_t iy = oy * p.stride[0] - p.pad[0] + tap / p.size[1] * p.rate[0];
    const int64_t ix = ox * p.stride[1] - p.pad[1] + tap % p.size[1] * p.rate[1];
    if (iy >= 0 && iy < h && ix >= 0 && ix < w)
      CopyRow(to + i * row, from + ((n * h + iy) * w + ix) * row, row);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_crop_and_resize) {
  op.Doc("parts of images, resized; what lies outside is extrapolation_value; float32");
  op.Input("image").Input("boxes").Input("box_ind").Input("crop_size", kShapeValue);
  op.Output("crops").Attr("method", "bilinear").Attr("extrapolation_value", 0.0);
  op.InferShape(CropShape).KernelKey("image");
  op.Kernel({DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kU8, DType::kI8,
             DType::kI16, DType::kI32, DType::kI64},
            CropAndResize);
}
HEDDLE_OP(tf_non_max_suppression_v5) {
  op.Doc("the best boxes that do not overlap better ones; soft_nms_sigma lowers scores instead");
  op.Input("boxes").Input("scores").Input("max_output_size");
  op.Input("iou_threshold", kOptional).Input("score_threshold", kOptional);
  op.Input("soft_nms_sigma", kOptional).Output("selected_indices");
  op.Output("selected_scores", kOptional).Output("valid_outputs", kOptional);
  op.Attr("pad_to_max_output_size", false).KernelKey("boxes");
  op.Kernel(DType::kF32, NonMaxSuppression).Kernel({DType::kF16, DType::kBF16}, RunInFloatAlloc);
}
HEDDLE_OP(tf_combined_non_max_suppression) {
  op.Doc("the best boxes of all classes of each image").Input("boxes").Input("scores");
  op.Input("max_output_size_per_class").Input("max_total_size").Input("iou_threshold");
  op.Input("score_threshold").Output("nmsed_boxes").Output("nmsed_scores");
  op.Output("nmsed_classes").Output("valid_detections").Attr("pad_per_class", false);
  op.Attr("clip_boxes", true).KernelKey("boxes").Kernel(DType::kF32, Combined);
}
HEDDLE_OP(tf_extract_image_patches) {
  op.Doc("the pixels of windows as channels").Input("images").Output("patches");
  op.Attr("ksizes", Ints{}).Attr("strides", Ints{}).Attr("rates", Ints{});
  op.Attr("padding", "VALID").InferShape(PatchShape).AnyKernel(ExtractPatches);
}

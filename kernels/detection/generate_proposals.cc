// generate_proposals (1 and 2): the regions that a region proposal network suggests.
#include <cmath>
#include <numeric>

#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/shape_checks.h"
#include "kernels/detection/boxes.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

template <typename T>
struct Proposal {
  T box[4];
  T score;
};

struct ProposalOptions {
  int64_t before, after;
  float nms, min_size, eta;
  bool pixels;  // coordinates count pixels: a box ends where its last pixel begins
  bool scaled;  // sizes are compared at the scale of the original image

  ProposalOptions(const OpContext& ctx, bool pixel_offset, bool in_original)
      : before(ctx.Int("pre_nms_topN")),
        after(ctx.Int("post_nms_topN")),
        nms(static_cast<float>(ctx.Float("nms_thresh"))),
        min_size(std::max(static_cast<float>(ctx.Float("min_size")), 1.0f)),
        eta(static_cast<float>(ctx.Float("eta"))),
        pixels(pixel_offset),
        scaled(in_original) {}
};

template <typename T>
void DecodeAnchor(const T* anchor, const T* variance, const T* delta, T extra, T* box) {
  static const double kMaxGrowth = std::log(1000.0 / 16.0);
  const T w = anchor[2] - anchor[0] + extra, h = anchor[3] - anchor[1] + extra;
  const T x = variance[0] * delta[0] * w + static_cast<T>(anchor[0] + 0.5 * w);
  const T y = variance[1] * delta[1] * h + static_cast<T>(anchor[1] + 0.5 * h);
  const T bw = std::exp(std::min(variance[2] * delta[2], static_cast<T>(kMaxGrowth))) * w;
  const T bh = std::exp(std::min(variance[3] * delta[3], static_cast<T>(kMaxGrowth))) * h;
  box[0] = x - bw / 2;
  box[1] = y - bh / 2;
  box[2] = x + bw / 2 - extra;
  box[3] = y + bh / 2 - extra;
}

// Large enough, and with its centre on the image.
template <typename T>
bool IsUsable(const ProposalOptions& options, const T* box, const T* image) {
  const T extra = options.pixels ? T(1) : T(0);
  T w = box[2] - box[0] + extra, h = box[3] - box[1] + extra;
  if (!options.pixels) return w >= options.min_size && h >= options.min_size;
  const T x = box[0] + w / 2, y = box[1] + h / 2;
  if (options.scaled) {
    w = (box[2] - box[0]) / image[2] + 1;
    h = (box[3] - box[1]) / image[2] + 1;
  }
  return w >= options.min_size && h >= options.min_size && x <= image[1] && y <= image[0];
}

template <typename T>
std::vector<Proposal<T>> SuppressProposals(const ProposalOptions& options,
                                           const std::vector<Proposal<T>>& all) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  LookCount looks;
  std::stable_sort(order.begin(), order.end(),
                   looks.In([&](size_t a, size_t b) { return Less(all[a].score, all[b].score); }));
  std::vector<Proposal<T>> kept;
  T threshold = static_cast<T>(options.nms);
  for (; !order.empty(); order.pop_back()) {
    LookForInterrupt();
    const Proposal<T>& p = all[order.back()];
    bool keep = true;
    for (size_t k = 0; k < kept.size() && keep; ++k)
      keep = BoxOverlap(p.box, kept[k].box, !options.pixels) <= threshold;
    if (!keep) continue;
    kept.push_back(p);
    if (options.eta < 1 && threshold > T(0.5)) threshold *= options.eta;
  }
  if (options.after > 0 && options.after < std::ssize(kept))
    kept.resize(static_cast<size_t>(options.after));
  return kept;
}

// The anchors with the best scores. `scores`: one per anchor and cell, cells first.
template <typename T>
std::vector<int> BestScores(int64_t before, const std::vector<T>& scores) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto better = [&](int a, int b) {
    return Greater(scores[static_cast<size_t>(a)], scores[static_cast<size_t>(b)]);
  };
  if (before <= 0 || before >= std::ssize(order)) {
    LookCount looks;
    std::sort(order.begin(), order.end(), looks.In(better));
  } else {
    LookCount looks;
    std::nth_element(order.begin(), order.begin() + before, order.end(), looks.In(better));
    order.resize(static_cast<size_t>(before));
  }
  return order;
}

// Scores [A, H, W] and deltas [4 A, H, W] of one image; anchors and variances [H, W, A, 4].
template <typename T>
std::vector<Proposal<T>> OneImage(const ProposalOptions& options, const Shape& shape,
                                  const T* scores, const T* deltas, const T* image,
                                  const T* anchors, const T* variances) {
  const int64_t count = shape[1], plane = shape[2] * shape[3];
  std::vector<T> flat(static_cast<size_t>(count * plane));
  for (const auto part : Stretches(count * plane))
    for (int64_t i = part.begin; i < part.end; ++i)
      flat[static_cast<size_t>(i)] = scores[i % count * plane + i / count];
  const T extra = options.pixels ? T(1) : T(0);
  std::vector<Proposal<T>> usable;
  for (const int i : BestScores(options.before, flat)) {
    LookForInterrupt();
    Proposal<T> p{{}, flat[static_cast<size_t>(i)]};
    T delta[4];
    for (int64_t k = 0; k < 4; ++k) delta[k] = deltas[(i % count * 4 + k) * plane + i / count];
    DecodeAnchor(anchors + int64_t{i} * 4, variances + int64_t{i} * 4, delta, extra, p.box);
    for (int k = 0; k < 4; ++k)
      p.box[k] = std::max(std::min(p.box[k], image[k % 2 == 0 ? 1 : 0] - extra), T(0));
    if (IsUsable(options, p.box, image)) usable.push_back(p);
  }
  if (usable.empty()) return {Proposal<T>{}};
  return options.nms <= 0 ? usable : SuppressProposals(options, usable);
}

template <typename T>
Status Generate(KernelContext& ctx, const Tensor& image, const ProposalOptions& options,
                int64_t image_size, Offsets* offsets) {
  const Tensor &scores = ctx.In("Scores"), &deltas = ctx.In("BboxDeltas");
  const Tensor &anchors = ctx.In("Anchors"), &variances = ctx.In("Variances");
  const Shape& s = scores.shape();
  HEDDLE_RETURN_IF_ERROR(s.rank() == 4 ? Status::Ok() : InvalidArgument("Scores must be 4-D"));
  const int64_t cells = s[1] * s[2] * s[3];
  if (deltas.numel() != 4 * scores.numel() || anchors.numel() != 4 * cells ||
      variances.numel() != 4 * cells || image.numel() < s[0] * image_size)
    return InvalidArgument("Scores ", s.ToString(), ", BboxDeltas ", deltas.shape().ToString(),
                           ", Anchors ", anchors.shape().ToString(), ", Variances ",
                           variances.shape().ToString(), " and the images' sizes ",
                           image.shape().ToString(), " do not fit each other");
  for (const Tensor* t : {&deltas, &anchors, &variances, &image})
    if (t->dtype() != scores.dtype()) return InvalidArgument("the operands differ in dtype");
  std::vector<Proposal<T>> all;
  const int64_t stride = image.numel() / std::max<int64_t>(s[0], 1);
  for (const int64_t n : Watched(s[0])) {
    const auto found =
        OneImage(options, s, scores.data<T>() + n * cells, deltas.data<T>() + n * 4 * cells,
                 image.data<T>() + n * stride, anchors.data<T>(), variances.data<T>());
    all.insert(all.end(), found.begin(), found.end());
    offsets->push_back(all.size());
  }
  const int64_t count = std::ssize(all);
  T* boxes = ctx.Alloc("RpnRois", scores.dtype(), Shape{count, 4}).template mutable_data<T>();
  T* probs = ctx.Alloc("RpnRoiProbs", scores.dtype(), Shape{count, 1}).template mutable_data<T>();
  for (const Proposal<T>& p : all) {
    boxes = std::copy(p.box, p.box + 4, boxes);
    *probs++ = p.score;
  }
  if (!ctx.HasOut("RpnRoisNum")) return Status::Ok();
  Tensor& numbers = ctx.Alloc("RpnRoisNum", DType::kI32, Shape{s[0]});
  for (int64_t n = 0; n < s[0]; ++n)
    numbers.mutable_data<int32_t>()[n] = static_cast<int32_t>(Length(*offsets, n));
  return Status::Ok();
}

template <typename T>
struct Generate1 {
  static Status Run(KernelContext& ctx) {
    Offsets offsets{0};
    HEDDLE_RETURN_IF_ERROR(
        Generate<T>(ctx, ctx.In("ImInfo"), ProposalOptions(ctx, true, true), 3, &offsets));
    ctx.Out("RpnRois").set_lod({offsets});
    ctx.Out("RpnRoiProbs").set_lod({offsets});
    return Status::Ok();
  }
};
template <typename T>
struct Generate2 {
  static Status Run(KernelContext& ctx) {
    Offsets offsets{0};
    return Generate<T>(ctx, ctx.In("ImShape"),
                       ProposalOptions(ctx, ctx.Bool("pixel_offset"), false), 2, &offsets);
  }
};

void DefineProposals(OpDef& op) {
  op.Input("Scores").Input("BboxDeltas").Input("Anchors").Input("Variances");
  op.Output("RpnRois").Output("RpnRoiProbs").Output("RpnRoisNum", kOptional);
  op.Attr("pre_nms_topN", 6000).Attr("post_nms_topN", 1000).Attr("nms_thresh", 0.5);
  op.Attr("min_size", 0.1).Attr("eta", 1.0).KernelKey("Anchors");
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(generate_proposals) {
  op.Doc("regions out of a region proposal network's scores and deltas");
  DefineProposals(op);
  op.Input("ImInfo").Kernels<Generate1, float, double>();
}
HEDDLE_OP(generate_proposals_v2) {
  op.Doc("regions out of a region proposal network's scores and deltas");
  DefineProposals(op);
  op.Input("ImShape").Attr("pixel_offset", true).Kernels<Generate2, float, double>();
}

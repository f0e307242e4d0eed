// rpn_target_assign and retinanet_target_assign: which anchors of a detector learn which box.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "core/interrupts.h"
#include "core/threads/look_meter.h"
#include "kernels/base/to_place.h"
#include "kernels/random/random.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

struct AnchorBox {
  float x1, y1, x2, y2;
  float Area() const { return (x2 - x1 + 1) * (y2 - y1 + 1); }
};

// Intersection over union, counting pixels.
float AnchorOverlap(const AnchorBox& a, const AnchorBox& b) {
  const float w = std::max(std::min(a.x2, b.x2) - std::max(a.x1, b.x1) + 1, 0.0f);
  const float h = std::max(std::min(a.y2, b.y2) - std::max(a.y1, b.y1) + 1, 0.0f);
  return w * h == 0 ? 0 : w * h / (a.Area() + b.Area() - w * h);
}

void Delta(const AnchorBox& from, const AnchorBox& to, float* out) {
  const float w = from.x2 - from.x1 + 1, h = from.y2 - from.y1 + 1;
  const float to_w = to.x2 - to.x1 + 1, to_h = to.y2 - to.y1 + 1;
  out[0] = (to.x1 + 0.5f * to_w - (from.x1 + 0.5f * w)) / w;
  out[1] = (to.y1 + 0.5f * to_h - (from.y1 + 0.5f * h)) / h;
  out[2] = std::log(to_w / w);
  out[3] = std::log(to_h / h);
}

// Result for one image; indices count its own anchors.
struct Assigned {
  std::vector<int> location, score;     // anchors that learn a box; that learn a score
  std::vector<int> label;               // of `score`
  std::vector<float> targets, weights;  // 4 for each of `location`
};

struct Rule {
  float positive, negative, fraction = -1;
  int64_t batch = -1;  // -1: all
  bool random = false;
};

class Assigner {
 public:
  Assigner(std::vector<AnchorBox> anchors, std::vector<AnchorBox> boxes, std::vector<int> labels,
           const Rule& rule, std::mt19937_64& engine)
      : anchors_(std::move(anchors)),
        boxes_(std::move(boxes)),
        labels_(std::move(labels)),
        rule_(rule),
        engine_(engine) {}

  Assigned Run() {
    Measure();
    std::vector<int> front = Candidates(), back;
    const auto share = ToPlace(rule_.fraction * static_cast<float>(rule_.batch));
    if (sampled()) Sample(share, &front);
    for (size_t i = 0; i < anchors_.size(); ++i)
      if (most_[i] < rule_.negative) back.push_back(static_cast<int>(i));
    if (sampled()) Sample(rule_.batch - static_cast<int64_t>(front.size()), &back);
    return Write(front, back);
  }

 private:
  bool sampled() const { return rule_.fraction > 0 && rule_.batch > 0; }

  // For every anchor the box it overlaps most, for every box the greatest overlap.
  void Measure() {
    overlap_ = std::make_unique_for_overwrite<float[]>(anchors_.size() * boxes_.size());
    most_.assign(anchors_.size(), 0);
    best_.assign(anchors_.size(), 0);
    box_most_.assign(boxes_.size(), 0);
    LookMeter meter;
    for (size_t i = 0; i < anchors_.size(); ++i)
      for (size_t k = 0; k < boxes_.size(); ++k) {
        meter.Did(4);
        const float o = AnchorOverlap(anchors_[i], boxes_[k]);
        overlap_[i * boxes_.size() + k] = o;
        if (o > most_[i]) most_[i] = o, best_[i] = k;
        box_most_[k] = std::max(box_most_[k], o);
      }
  }
  // Anchors that overlap enough, or a box more than the others do.
  std::vector<int> Candidates() const {
    constexpr float kSame = 0.00001f;
    std::vector<int> found;
    LookMeter meter;
    for (size_t i = 0; i < anchors_.size(); ++i) {
      meter.Did(4 + std::ssize(boxes_));
      bool chosen = !boxes_.empty() && most_[i] >= rule_.positive;
      for (size_t k = 0; k < boxes_.size() && !chosen; ++k)
        chosen = std::abs(overlap_[i * boxes_.size() + k] - box_most_[k]) < kSame;
      if (chosen) found.push_back(static_cast<int>(i));
    }
    return found;
  }
  void Sample(int64_t n, std::vector<int>* from) {
    const auto want = static_cast<size_t>(std::max<int64_t>(n, 0));
    if (from->size() <= want) return;
    std::uniform_real_distribution<float> draw(0, 1);
    for (size_t i = want; rule_.random && i < from->size(); ++i) {
      const auto at = static_cast<size_t>(std::floor(draw(engine_) * static_cast<float>(i)));
      if (at < want) std::swap((*from)[at], (*from)[i]);
    }
    from->resize(want);
  }
  // An anchor that is both learns background; the first foreground anchor stands in for its box,
  // without weight.
  Assigned Write(const std::vector<int>& front, const std::vector<int>& back) const {
    std::vector<int> kind(anchors_.size(), -1);
    for (int i : front) kind[static_cast<size_t>(i)] = 1;
    Assigned a;
    LookMeter meter;
    for (int i : back) {
      meter.Did(16);
      if (kind[static_cast<size_t>(i)] == 1) {
        a.location.push_back(front[0]);
        a.weights.insert(a.weights.end(), 4, 0.0f);
      }
      kind[static_cast<size_t>(i)] = 0;
    }
    for (size_t i = 0; i < kind.size(); ++i) {
      meter.Did(4);
      if (kind[i] != 1) continue;
      a.location.push_back(static_cast<int>(i));
      a.score.push_back(static_cast<int>(i));
      a.label.push_back(labels_.empty() ? 1 : labels_[best_[i]]);
    }
    a.weights.resize(4 * a.location.size(), 1.0f);
    for (size_t i = 0; i < kind.size(); ++i)
      if (kind[i] == 0) a.score.push_back(static_cast<int>(i)), a.label.push_back(0);
    a.targets.resize(4 * a.location.size());
    for (size_t i = 0; i < a.location.size(); ++i) {
      meter.Did(64);
      const auto anchor = static_cast<size_t>(a.location[i]);
      Delta(anchors_[anchor], boxes_[best_[anchor]], &a.targets[4 * i]);
    }
    return a;
  }

  std::vector<AnchorBox> anchors_, boxes_;
  std::vector<int> labels_;  // of boxes_; empty: 1
  Rule rule_;
  std::mt19937_64& engine_;
  std::unique_ptr<float[]> overlap_;  // of an anchor with each box
  std::vector<float> most_, box_most_;
  std::vector<size_t> best_;
};

Result<const Offsets*> PerImage(const KernelContext& ctx, Key key, int64_t images, int64_t width) {
  const Tensor& t = ctx.In(key);
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* o, OffsetsOf(t, key.name));
  if (SequenceCount(*o) != images || RowSize(t) != width)
    return InvalidArgument(key.name, " of shape ", t.shape().ToString(), " with ",
                           SequenceCount(*o), " sequences does not suit ", images, " images");
  return o;
}

// Puts the images' results together.
class Joined {
 public:
  void Add(const Assigned& a, const std::vector<int>& inside, int64_t first) {
    for (int i : a.location)
      location_.push_back(static_cast<int>(first + inside[static_cast<size_t>(i)]));
    for (int i : a.score)
      score_.push_back(static_cast<int>(first + inside[static_cast<size_t>(i)]));
    label_.insert(label_.end(), a.label.begin(), a.label.end());
    targets_.insert(targets_.end(), a.targets.begin(), a.targets.end());
    weights_.insert(weights_.end(), a.weights.begin(), a.weights.end());
    locations_at_.push_back(location_.size());
    scores_at_.push_back(score_.size());
  }
  void Write(KernelContext& ctx) const {
    const auto n = static_cast<int64_t>(location_.size()), m = static_cast<int64_t>(score_.size());
    Put<int32_t>(ctx, "LocationIndex", {n}, location_, locations_at_);
    Put<int32_t>(ctx, "ScoreIndex", {m}, score_, scores_at_);
    Put<float>(ctx, "TargetBBox", {n, 4}, targets_, locations_at_);
    Put<int32_t>(ctx, "TargetLabel", {m, 1}, label_, scores_at_);
    Put<float>(ctx, "BBoxInsideWeight", {n, 4}, weights_, locations_at_);
  }

 private:
  template <typename T, typename V>
  static void Put(KernelContext& ctx, Key key, const Shape& shape, const V& values,
                  const Offsets& lod) {
    if (!ctx.HasOut(key)) return;
    Tensor& out = ctx.Alloc(key, kDTypeOf<T>, shape);
    std::copy(values.begin(), values.end(), out.template mutable_data<T>());
    out.set_lod({lod});
  }
  std::vector<int> location_, score_, label_;
  std::vector<float> targets_, weights_;
  Offsets locations_at_{0}, scores_at_{0};
};

Status CheckInputs(const KernelContext& ctx) {
  const Tensor &anchor = ctx.In("Anchor"), &info = ctx.In("ImInfo");
  if (anchor.rank() < 1 || anchor.dim(-1) != 4 || info.rank() != 2 || info.dim(1) != 3)
    return InvalidArgument("Anchor ", anchor.shape().ToString(), " and ImInfo ",
                           info.shape().ToString(), " must be boxes and [images, 3]");
  for (Key key : {Key("Anchor"), Key("ImInfo"), Key("GtBoxes")})
    if (ctx.In(key).dtype() != DType::kF32) return InvalidArgument(key.name, " must be float32");
  if (ctx.In("IsCrowd").dtype() != DType::kI32) return InvalidArgument("IsCrowd must be int32");
  return Status::Ok();
}

// Anchors that do not reach beyond the image by more than `margin`; all when it is negative.
std::vector<int> Inside(const AnchorBox* anchors, int64_t n, const float* image, float margin) {
  std::vector<int> inside;
  for (const int64_t i : Watched(n)) {
    const AnchorBox& a = anchors[i];
    if (margin < 0 || (a.x1 >= -margin && a.y1 >= -margin && a.x2 < image[1] + margin &&
                       a.y2 < image[0] + margin))
      inside.push_back(static_cast<int>(i));
  }
  return inside;
}

// `margin` < 0: all anchors. `counts`: receives each image's number of foreground anchors + 1.
Status Assign(KernelContext& ctx, const Rule& rule, float margin, bool labelled, Tensor* counts) {
  HEDDLE_RETURN_IF_ERROR(CheckInputs(ctx));
  const Tensor &anchor = ctx.In("Anchor"), &info = ctx.In("ImInfo");
  const int64_t images = info.dim(0), n = anchor.numel() / 4;
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* boxes, PerImage(ctx, "GtBoxes", images, 4));
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* crowds, PerImage(ctx, "IsCrowd", images, 1));
  if (*boxes != *crowds) return InvalidArgument("GtBoxes and IsCrowd differ in their sequences");
  if (labelled) {
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* labels, PerImage(ctx, "GtLabels", images, 1));
    if (*boxes != *labels || ctx.In("GtLabels").dtype() != DType::kI32)
      return InvalidArgument("GtLabels must be one int32 for each box");
  }
  const auto* anchors = reinterpret_cast<const AnchorBox*>(anchor.data<float>());
  Joined joined;
  for (const int64_t i : Watched(images)) {
    const float* image = info.data<float>() + i * 3;  // height, width, scale
    const std::vector<int> inside = Inside(anchors, n, image, margin);
    std::vector<AnchorBox> chosen, truths;
    for (int k : inside) chosen.push_back(anchors[k]);
    std::vector<int> labels;
    for (int64_t k = Begin(*boxes, i); k < Begin(*boxes, i + 1); ++k) {
      if (ctx.In("IsCrowd").data<int32_t>()[k] != 0) continue;
      const float *b = ctx.In("GtBoxes").data<float>() + k * 4, s = image[2];
      truths.push_back({b[0] * s, b[1] * s, b[2] * s, b[3] * s});
      if (labelled) labels.push_back(ctx.In("GtLabels").data<int32_t>()[k]);
    }
    const Assigned a =
        Assigner(std::move(chosen), std::move(truths), std::move(labels), rule, ctx.random()).Run();
    if (counts) counts->mutable_data<int32_t>()[i] = static_cast<int32_t>(a.location.size()) + 1;
    joined.Add(a, inside, i * n);
  }
  joined.Write(ctx);
  return Status::Ok();
}

Status RpnTargetAssign(KernelContext& ctx) {
  Rule rule;
  rule.positive = static_cast<float>(ctx.Float("rpn_positive_overlap"));
  rule.negative = static_cast<float>(ctx.Float("rpn_negative_overlap"));
  rule.fraction = static_cast<float>(ctx.Float("rpn_fg_fraction"));
  rule.batch = ctx.Int("rpn_batch_size_per_im");
  rule.random = ctx.Bool("use_random");
  return Assign(ctx, rule, static_cast<float>(ctx.Float("rpn_straddle_thresh")), false, nullptr);
}

Status RetinanetTargetAssign(KernelContext& ctx) {
  Rule rule;
  rule.positive = static_cast<float>(ctx.Float("positive_overlap"));
  rule.negative = static_cast<float>(ctx.Float("negative_overlap"));
  Tensor* counts = nullptr;
  if (ctx.HasOut("ForegroundNumber")) {
    const int64_t images = ctx.In("ImInfo").rank() > 0 ? ctx.In("ImInfo").dim(0) : 0;
    counts = &ctx.Alloc("ForegroundNumber", DType::kI32, {images, 1});
  }
  return Assign(ctx, rule, -1, true, counts);
}

OpDef& Declare(OpDef& op) {
  op.Input("Anchor").Input("GtBoxes").Input("IsCrowd").Input("ImInfo");
  op.Output("LocationIndex", kOptional).Output("ScoreIndex", kOptional);
  op.Output("TargetBBox", kOptional).Output("TargetLabel", kOptional);
  return op.Output("BBoxInsideWeight", kOptional);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(rpn_target_assign) {
  Declare(op).Doc("anchors that learn a box or background, sampled").Traits(kRandom);
  op.Attr("rpn_batch_size_per_im", 256).Attr("rpn_straddle_thresh", 0.0);
  op.Attr("rpn_positive_overlap", 0.7).Attr("rpn_negative_overlap", 0.3);
  op.Attr("rpn_fg_fraction", 0.25).Attr("use_random", true);
  op.Kernel(DType::kF32, RpnTargetAssign);
}
HEDDLE_OP(retinanet_target_assign) {
  Declare(op).Doc("anchors that learn a box and its class, or background").Input("GtLabels");
  op.Output("ForegroundNumber", kOptional);
  op.Attr("positive_overlap", 0.5).Attr("negative_overlap", 0.4);
  op.Kernel(DType::kF32, RetinanetTargetAssign);
}

// generate_proposal_labels: the regions a detector's second stage learns from, with their classes
// and boxes.
#include <algorithm>
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/to_place.h"
#include "kernels/random/random.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

struct Box {
  float x1, y1, x2, y2;
  float Width() const { return x2 - x1 + 1; }
  float Height() const { return y2 - y1 + 1; }
  Box Times(float s) const { return {x1 * s, y1 * s, x2 * s, y2 * s}; }
};

float OverlapOf(const Box& a, const Box& b) {
  const float w = std::max(std::min(a.x2, b.x2) - std::max(a.x1, b.x1) + 1, 0.0f);
  const float h = std::max(std::min(a.y2, b.y2) - std::max(a.y1, b.y1) + 1, 0.0f);
  const float both = w * h;
  return both == 0 ? 0 : both / (a.Width() * a.Height() + b.Width() * b.Height() - both);
}

struct Settings {
  int64_t batch, classes;
  float fraction, front, back_high, back_low;
  Floats weights;
  bool random, cascade, agnostic;
};

// One image's operands.
struct Image {
  std::vector<Box> regions, truths;  // in the original image's scale
  const int32_t *classes, *crowd;    // of truths
  float scale;
};

// Rows of the outputs.
struct Chosen {
  std::vector<Box> regions;
  std::vector<int32_t> labels;
  std::vector<float> targets, inside, overlaps;
};

class Chooser {
 public:
  Chooser(const Image& image, const Settings& s, std::mt19937_64& engine)
      : image_(image), s_(s), engine_(engine), all_(image.truths) {
    all_.insert(all_.end(), image.regions.begin(), image.regions.end());
  }

  void Run(Chosen* out) {
    Split();
    if (!s_.cascade) Limit();
    for (size_t i = 0; i < front_.size(); ++i) {
      const size_t truth = truth_[i];
      Append(front_[i], image_.classes[truth], &image_.truths[truth], out);
    }
    for (const size_t i : back_) Append(i, 0, nullptr, out);
  }

 private:
  // Front: overlaps a truth enough; back: some, but little.
  void Split() {
    constexpr float kSame = 0.00001f;
    const size_t truths = image_.truths.size();
    for (size_t i = 0; i < all_.size(); ++i) {
      LookForInterrupt();
      std::vector<float> overlap;
      float most = 0;
      for (const Box& t : image_.truths)
        most = std::max(most, overlap.emplace_back(OverlapOf(all_[i], t)));
      most_.push_back(most);
      if (i < truths && image_.crowd[i] != 0) most = -1;
      if (s_.cascade && !(all_[i].Width() > 0 && all_[i].Height() > 0)) continue;
      if (most >= s_.front) {
        for (size_t k = 0; k < truths; ++k)
          if (std::abs(most - overlap[k]) < kSame) {
            front_.push_back(i);
            truth_.push_back(k);
            break;
          }
      } else if (most >= s_.back_low && most < s_.back_high) {
        back_.push_back(i);
      }
    }
  }
  void Limit() {
    const auto per_image = static_cast<float>(s_.batch);
    const auto most = static_cast<size_t>(std::max<int64_t>(ToPlace(per_image * s_.fraction), 0));
    const size_t front = std::min(front_.size(), most);
    std::uniform_real_distribution<float> draw(0, 1);
    const auto place = [&](size_t i) {
      return static_cast<size_t>(std::floor(draw(engine_) * static_cast<float>(i)));
    };
    for (size_t i = front; s_.random && i < front_.size(); ++i)
      if (const size_t at = place(i); at < front) {
        std::swap(front_[at], front_[i]);
        std::swap(truth_[at], truth_[i]);
      }
    front_.resize(front);
    truth_.resize(front);
    const int64_t rest = std::max<int64_t>(s_.batch - static_cast<int64_t>(front), 0);
    const size_t back = std::min(back_.size(), static_cast<size_t>(rest));
    for (size_t i = back; s_.random && i < back_.size(); ++i)
      if (const size_t at = place(i); at < back) std::swap(back_[at], back_[i]);
    back_.resize(back);
  }
  void Append(size_t i, int32_t label, const Box* truth, Chosen* out) const {
    const Box& box = all_[i];
    out->regions.push_back(box.Times(image_.scale));
    out->labels.push_back(label);
    out->overlaps.push_back(most_[i]);
    const size_t row = out->targets.size();
    out->targets.resize(row + static_cast<size_t>(4 * s_.classes), 0.0f);
    out->inside.resize(out->targets.size(), 0.0f);
    if (truth == nullptr || label <= 0) return;
    const size_t at = row + 4 * static_cast<size_t>(s_.agnostic ? 1 : label);
    const float delta[] = {
        (truth->x1 + 0.5f * truth->Width() - (box.x1 + 0.5f * box.Width())) / box.Width(),
        (truth->y1 + 0.5f * truth->Height() - (box.y1 + 0.5f * box.Height())) / box.Height(),
        std::log(truth->Width() / box.Width()), std::log(truth->Height() / box.Height())};
    for (size_t k = 0; k < 4; ++k) {
      out->targets[at + k] = delta[k] / static_cast<float>(s_.weights[k]);
      out->inside[at + k] = 1;
    }
  }

  const Image& image_;
  const Settings& s_;
  std::mt19937_64& engine_;
  std::vector<Box> all_;  // the truths, then the regions
  std::vector<float> most_;
  std::vector<size_t> front_, truth_, back_;
};

Status CheckOperands(const KernelContext& ctx, const Settings& s) {
  const Tensor& info = ctx.In("ImInfo");
  if (info.rank() != 2 || info.dim(1) != 3 || s.classes < 2 || s.weights.size() != 4)
    return InvalidArgument("ImInfo ", info.shape().ToString(), ", class_nums ", s.classes, " and ",
                           s.weights.size(),
                           " bbox_reg_weights; expected [images, 3], 2 or more, 4");
  for (Key key : {Key("RpnRois"), Key("GtBoxes"), Key("ImInfo")})
    if (ctx.In(key).dtype() != DType::kF32) return InvalidArgument(key.name, " must be float32");
  for (Key key : {Key("GtClasses"), Key("IsCrowd")})
    if (ctx.In(key).dtype() != DType::kI32) return InvalidArgument(key.name, " must be int32");
  const Tensor& truths = ctx.In("GtBoxes");
  if (truths.rank() != 2 || truths.dim(1) != 4 || ctx.In("RpnRois").rank() != 2 ||
      ctx.In("RpnRois").dim(1) != 4 || ctx.In("GtClasses").numel() != truths.dim(0) ||
      ctx.In("IsCrowd").numel() != truths.dim(0))
    return InvalidArgument("GtBoxes ", truths.shape().ToString(), " and RpnRois ",
                           ctx.In("RpnRois").shape().ToString(), " must be [n, 4]");
  for (int64_t i = 0; i < truths.dim(0); ++i)
    if (const int32_t c = ctx.In("GtClasses").data<int32_t>()[i]; c >= s.classes)
      return InvalidArgument("GtClasses names class ", c, " of ", s.classes);
  return Status::Ok();
}

Settings SettingsOf(const OpContext& ctx) {
  const auto number = [&](Key key) { return static_cast<float>(ctx.Float(key)); };
  return {ctx.Int("batch_size_per_im"),
          ctx.Int("class_nums"),
          number("fg_fraction"),
          number("fg_thresh"),
          number("bg_thresh_hi"),
          number("bg_thresh_lo"),
          ctx.Attr<Floats>("bbox_reg_weights"),
          ctx.Bool("use_random"),
          ctx.Bool("is_cascade_rcnn"),
          ctx.Bool("is_cls_agnostic")};
}

// In a cascade, regions without area and those equal to a ground truth are dropped.
Image ImageAt(const KernelContext& ctx, int64_t i, const Offsets& regions, const Offsets& truths,
              bool cascade) {
  Image image;
  image.scale = ctx.In("ImInfo").data<float>()[i * 3 + 2];
  const auto* r = reinterpret_cast<const Box*>(ctx.In("RpnRois").data<float>());
  const Tensor* overlap = ctx.InOpt("MaxOverlap");
  for (int64_t k = Begin(regions, i); k < Begin(regions, i + 1); ++k) {
    const Box box = r[k].Times(1 / image.scale);
    if (cascade && (!(box.Width() > 0 && box.Height() > 0) ||
                    (overlap != nullptr && overlap->data<float>()[k] >= 1.0f)))
      continue;
    image.regions.push_back(box);
  }
  const auto* t = reinterpret_cast<const Box*>(ctx.In("GtBoxes").data<float>());
  image.truths.assign(t + Begin(truths, i), t + Begin(truths, i + 1));
  image.classes = ctx.In("GtClasses").data<int32_t>() + Begin(truths, i);
  image.crowd = ctx.In("IsCrowd").data<int32_t>() + Begin(truths, i);
  return image;
}

template <typename T, typename V>
void Put(KernelContext& ctx, Key key, const Shape& shape, const V& values, const Offsets& lod) {
  if (!ctx.HasOut(key)) return;
  Tensor& out = ctx.Alloc(key, kDTypeOf<T>, shape);
  if (out.numel() > 0) WatchedMemcpy(out.mutable_raw(), values.data(), out.bytes());
  out.set_lod({lod});
}

Status GenerateProposalLabels(KernelContext& ctx) {
  const Settings s = SettingsOf(ctx);
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx, s));
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* regions, OffsetsOf(ctx.In("RpnRois"), "RpnRois"));
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* truths, OffsetsOf(ctx.In("GtBoxes"), "GtBoxes"));
  const int64_t images = ctx.In("ImInfo").dim(0);
  if (SequenceCount(*regions) != images || SequenceCount(*truths) != images)
    return InvalidArgument("RpnRois and GtBoxes must have a sequence for each of ", images,
                           " images");
  const Tensor* overlap = ctx.InOpt("MaxOverlap");
  if (overlap != nullptr &&
      (overlap->dtype() != DType::kF32 || overlap->numel() != ctx.In("RpnRois").dim(0)))
    return InvalidArgument("MaxOverlap must hold a float32 for each of RpnRois");
  Chosen all;
  Offsets lod{0};
  for (const int64_t i : Watched(images)) {
    const Image image = ImageAt(ctx, i, *regions, *truths, s.cascade);
    Chooser(image, s, ctx.random()).Run(&all);
    lod.push_back(all.labels.size());
  }
  const auto n = static_cast<int64_t>(all.labels.size());
  Put<float>(ctx, "Rois", {n, 4}, all.regions, lod);
  Put<int32_t>(ctx, "LabelsInt32", {n, 1}, all.labels, lod);
  Put<float>(ctx, "BboxTargets", {n, 4 * s.classes}, all.targets, lod);
  Put<float>(ctx, "BboxInsideWeights", {n, 4 * s.classes}, all.inside, lod);
  Put<float>(ctx, "BboxOutsideWeights", {n, 4 * s.classes}, all.inside, lod);
  Put<float>(ctx, "MaxOverlapWithGT", {n}, all.overlaps, lod);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(generate_proposal_labels) {
  op.Doc("regions with classes and box targets, sampled").Input("RpnRois").Input("GtClasses");
  op.Input("IsCrowd").Input("GtBoxes").Input("ImInfo").Input("MaxOverlap", kOptional);
  op.Output("Rois").Output("LabelsInt32", kOptional).Output("BboxTargets", kOptional);
  op.Output("BboxInsideWeights", kOptional).Output("BboxOutsideWeights", kOptional);
  op.Output("MaxOverlapWithGT", kOptional).Traits(kRandom);
  op.Attr("batch_size_per_im", 0).Attr("fg_fraction", 0.0).Attr("fg_thresh", 0.0);
  op.Attr("bg_thresh_hi", 0.0).Attr("bg_thresh_lo", 0.0).Attr("bbox_reg_weights", Floats{});
  op.Attr("class_nums", 0).Attr("use_random", true).Attr("is_cascade_rcnn", false);
  op.Attr("is_cls_agnostic", false).Kernel(DType::kF32, GenerateProposalLabels);
}

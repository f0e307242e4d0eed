// detection_map: mean average precision of detections, with counts that may go on over batches.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"
#include "kernels/detection/boxes.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

struct Truth {
  float box[4];
  bool difficult;
};
struct Hit {
  float score;
  int flag;
};
using Hits = std::map<int, std::vector<Hit>>;  // by class

// Running counts.
struct Counts {
  std::map<int, int> truths;  // by class
  Hits right, wrong;

  void Add(int label, float score, bool is_right) {
    right[label].push_back({score, is_right});
    wrong[label].push_back({score, !is_right});
  }
};

// One image's boxes, by class.
using Truths = std::map<int, std::vector<Truth>>;
struct ScoredBox {
  float score, box[4];
};
using Detections = std::map<int, std::vector<ScoredBox>>;

Truths TruthsOf(const Tensor& t, int64_t begin, int64_t end) {
  const int64_t width = t.dim(1);
  Truths truths;
  for (const int64_t i : Watched(begin, end)) {
    const float* row = t.data<float>() + i * width;
    Truth truth{{}, width == 6 && std::abs(row[1]) >= 1e-6f};
    std::copy_n(row + width - 4, 4, truth.box);
    truths[static_cast<int>(row[0])].push_back(truth);
  }
  return truths;
}

Detections DetectionsOf(const Tensor& t, int64_t begin, int64_t end) {
  Detections all;
  for (const int64_t i : Watched(begin, end)) {
    const float* row = t.data<float>() + i * 6;
    ScoredBox d{row[1], {}};
    for (int k = 0; k < 4; ++k) d.box[k] = std::clamp(row[2 + k], 0.0f, 1.0f);
    all[static_cast<int>(row[0])].push_back(d);
  }
  return all;
}

// Each truth is found once, by the best detection that overlaps it most; later ones are wrong.
void MatchTruths(const std::vector<Truth>& truths, std::vector<ScoredBox> found, int label,
                 float threshold, bool difficult_too, Counts* counts) {
  LookCount looks;
  std::stable_sort(found.begin(), found.end(), looks.In([](const ScoredBox& a, const ScoredBox& b) {
    return Greater(a.score, b.score);
  }));
  std::vector<bool> taken(truths.size(), false);
  for (const ScoredBox& d : found) {
    LookForInterrupt();
    float most = -1;
    size_t at = truths.size();  // none
    for (size_t k = 0; k < truths.size(); ++k)
      if (const float o = BoxOverlap(d.box, truths[k].box, true); o > most) most = o, at = k;
    if (at == truths.size() || !(most > threshold)) {
      counts->Add(label, d.score, false);
    } else if (difficult_too || !truths[at].difficult) {
      counts->Add(label, d.score, !taken[at]);
      taken[at] = true;
    }
  }
}

void CountImage(const Truths& truths, const Detections& detections, float threshold,
                bool difficult_too, Counts* counts) {
  for (const auto& [label, boxes] : truths) {
    const auto n = std::count_if(boxes.begin(), boxes.end(),
                                 [&](const Truth& t) { return difficult_too || !t.difficult; });
    if (n > 0) counts->truths[label] += static_cast<int>(n);
  }
  for (const auto& [label, found] : detections) {
    const auto same = truths.find(label);
    MatchTruths(same == truths.end() ? std::vector<Truth>{} : same->second, found, label, threshold,
                difficult_too, counts);
  }
}

std::vector<int> Accumulated(std::vector<Hit> hits) {
  LookCount looks;
  std::stable_sort(hits.begin(), hits.end(),
                   looks.In([](const Hit& a, const Hit& b) { return Greater(a.score, b.score); }));
  std::vector<int> sums;
  for (const Hit& h : hits) sums.push_back((sums.empty() ? 0 : sums.back()) + h.flag);
  return sums;
}

// Area under the curve of precision over recall.
float Integral(const std::vector<float>& precision, const std::vector<float>& recall) {
  float area = 0, before = 0;
  for (size_t i = 0; i < recall.size(); ++i) {
    if (std::abs(recall[i] - before) > 1e-6f) area += precision[i] * std::abs(recall[i] - before);
    before = recall[i];
  }
  return area;
}

// The mean of the best precision at recalls 0, 0.1, …, 1.
float ElevenPoints(const std::vector<float>& precision, const std::vector<float>& recall) {
  float best[11] = {}, sum = 0;
  auto start = static_cast<int64_t>(recall.size()) - 1;
  for (int j = 10; j >= 0; --j)
    for (int64_t i = start; i >= 0; --i) {
      const auto at = static_cast<size_t>(i);
      if (recall[at] < static_cast<float>(j) / 10.0f) {
        start = i;
        if (j > 0) best[j - 1] = best[j];
        break;
      }
      best[j] = std::max(best[j], precision[at]);
    }
  for (int j = 10; j >= 0; --j) sum += best[j] / 11;
  return sum;
}

float MeanPrecision(const Counts& counts, bool eleven, int64_t background) {
  float sum = 0;
  int classes = 0;
  for (const auto& [label, truths] : counts.truths) {
    if (truths == background) continue;  // Paddle compares the number, not the class
    ++classes;
    const auto right = counts.right.find(label);
    if (right == counts.right.end()) continue;
    const std::vector<int> good = Accumulated(right->second),
                           bad = Accumulated(counts.wrong.at(label));
    std::vector<float> precision, recall;
    for (size_t i = 0; i < good.size(); ++i) {
      precision.push_back(static_cast<float>(good[i]) / static_cast<float>(good[i] + bad[i]));
      recall.push_back(static_cast<float>(good[i]) / static_cast<float>(truths));
    }
    sum += eleven ? ElevenPoints(precision, recall) : Integral(precision, recall);
  }
  return classes == 0 ? 0 : sum / static_cast<float>(classes);
}

// Reads the counts of earlier batches: [classes, 1] and, class by class, [n, 2] of score and flag.
Status ReadState(KernelContext& ctx, int64_t classes, Counts* counts) {
  const Tensor* has = ctx.InOpt("HasState");
  if (has == nullptr || has->dtype() != DType::kI32 || has->numel() < 1) return Status::Ok();
  if (*has->data<int32_t>() == 0) return Status::Ok();
  const Tensor& truths = ctx.In("PosCount");
  if (truths.dtype() != DType::kI32 || truths.numel() != classes)
    return InvalidArgument("PosCount must hold an int32 for each of ", classes, " classes");
  for (const int64_t i : Watched(classes))
    counts->truths[static_cast<int>(i)] = truths.data<int32_t>()[i];
  for (const auto& [key, hits] :
       {std::pair{Key("TruePos"), &counts->right}, std::pair{Key("FalsePos"), &counts->wrong}}) {
    const Tensor& t = ctx.In(key);
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* o, OffsetsOf(t, key.name));
    if (t.dtype() != DType::kF32 || RowSize(t) != 2 || SequenceCount(*o) != classes)
      return InvalidArgument(key.name, " must hold rows of 2 float32 for each class");
    for (int i = 0; i < classes; ++i) {
      LookForInterrupt();
      for (int64_t r = Begin(*o, i); r < Begin(*o, i + 1); ++r) {
        const float* row = t.data<float>() + 2 * r;
        (*hits)[i].push_back({row[0], static_cast<int>(row[1])});
      }
    }
  }
  return Status::Ok();
}

void WriteHits(KernelContext& ctx, Key key, const Hits& hits, int64_t classes) {
  if (!ctx.HasOut(key)) return;
  Offsets offsets{0};
  std::vector<float> rows;
  for (int i = 0; i < classes; ++i) {
    LookForInterrupt();
    if (const auto found = hits.find(i); found != hits.end())
      for (const Hit& h : found->second)
        rows.insert(rows.end(), {h.score, static_cast<float>(h.flag)});
    offsets.push_back(rows.size() / 2);
  }
  Tensor& out = ctx.Alloc(key, DType::kF32, {static_cast<int64_t>(rows.size() / 2), 2});
  std::copy(rows.begin(), rows.end(), out.mutable_data<float>());
  out.set_lod({offsets});
}

Status DetectionMap(KernelContext& ctx) {
  const Tensor &found = ctx.In("DetectRes"), &label = ctx.In("Label");
  const int64_t classes = ctx.Int("class_num");
  const std::string& type = ctx.Str("ap_type");
  if (type != "integral" && type != "11point")
    return InvalidArgument("ap_type must be integral or 11point, not '", type, "'");
  if (classes < 1 || found.rank() != 2 || found.dim(1) != 6 || label.rank() != 2 ||
      (label.dim(1) != 5 && label.dim(1) != 6) || label.dtype() != DType::kF32)
    return InvalidArgument("DetectRes ", found.shape().ToString(), " and Label ",
                           label.shape().ToString(), " must be [n, 6] and [m, 5] or [m, 6]");
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* images, OffsetsOf(label, "Label"));
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* detected, OffsetsOf(found, "DetectRes"));
  if (images->size() != detected->size())
    return InvalidArgument("DetectRes and Label are of different numbers of images");
  Counts counts;
  HEDDLE_RETURN_IF_ERROR(ReadState(ctx, classes, &counts));
  for (int64_t i = 0; i < SequenceCount(*images); ++i)
    CountImage(TruthsOf(label, Begin(*images, i), Begin(*images, i + 1)),
               DetectionsOf(found, Begin(*detected, i), Begin(*detected, i + 1)),
               static_cast<float>(ctx.Float("overlap_threshold")), ctx.Bool("evaluate_difficult"),
               &counts);
  *ctx.Alloc("MAP", DType::kF32, {1}).mutable_data<float>() =
      MeanPrecision(counts, type == "11point", ctx.Int("background_label"));
  if (ctx.HasOut("AccumPosCount")) {
    auto* out = ctx.Alloc("AccumPosCount", DType::kI32, {classes, 1}).mutable_data<int32_t>();
    for (const int64_t i : Watched(classes)) {
      const auto at = counts.truths.find(static_cast<int>(i));
      out[i] = at != counts.truths.end() ? at->second : 0;
    }
  }
  WriteHits(ctx, "AccumTruePos", counts.right, classes);
  WriteHits(ctx, "AccumFalsePos", counts.wrong, classes);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(detection_map) {
  op.Doc("mean average precision of detections").Input("DetectRes").Input("Label");
  op.Input("HasState", kOptional).Input("PosCount", kOptional).Input("TruePos", kOptional);
  op.Input("FalsePos", kOptional).Output("AccumPosCount", kOptional);
  op.Output("AccumTruePos", kOptional).Output("AccumFalsePos", kOptional).Output("MAP");
  op.Attr("class_num", 0).Attr("background_label", 0).Attr("overlap_threshold", 0.5);
  op.Attr("evaluate_difficult", true).Attr("ap_type", "integral");
  op.Kernel(DType::kF32, DetectionMap);
}

// Non-maximum suppression class by class: multiclass_nms (1, 2 and 3) and locality_aware_nms, which
// first merges neighbouring boxes.
#include <map>

#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"
#include "kernels/detection/boxes.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

struct Options {
  double score_threshold, nms_threshold, eta;
  int64_t nms_top_k, keep_top_k, background;
  bool normalized;

  explicit Options(const OpContext& ctx)
      : score_threshold(ctx.Float("score_threshold")),
        nms_threshold(ctx.Float("nms_threshold")),
        eta(ctx.Float("nms_eta")),
        nms_top_k(ctx.Int("nms_top_k")),
        keep_top_k(ctx.Int("keep_top_k")),
        background(ctx.Int("background_label")),
        normalized(ctx.Bool("normalized")) {}
};

// The boxes of one image. With scores [classes, boxes] all classes share the boxes; with scores
// [boxes, classes] each has boxes of its own.
template <typename T>
struct ClassImage {
  const T *scores, *boxes;
  int64_t count, classes, box_size;
  bool shared;

  T Score(int64_t c, int64_t i) const {
    return shared ? scores[c * count + i] : scores[i * classes + c];
  }
  const T* Box(int64_t c, int64_t i) const {
    return boxes + (shared ? i : i * classes + c) * box_size;
  }
};

struct Pick {
  int64_t label, box;
};
// Scores are compared as float, whatever their type; ties keep their order.
struct Candidate {
  float score;
  int64_t box;
};
void SortByScore(std::vector<Candidate>* list) {
  LookCount looks;
  std::stable_sort(list->begin(), list->end(), looks.In([](const Candidate& a, const Candidate& b) {
    return Greater(a.score, b.score);
  }));
}

template <typename T>
std::vector<Candidate> Candidates(const ClassImage<T>& image, int64_t c, const Options& options,
                                  const std::vector<bool>* skip) {
  std::vector<Candidate> found;
  const T threshold = static_cast<T>(options.score_threshold);
  for (const auto part : Stretches(image.count))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (image.Score(c, i) > threshold && !(skip != nullptr && (*skip)[static_cast<size_t>(i)]))
        found.push_back({static_cast<float>(image.Score(c, i)), i});
  SortByScore(&found);
  if (options.nms_top_k > -1 && options.nms_top_k < std::ssize(found))
    found.resize(static_cast<size_t>(options.nms_top_k));
  return found;
}

template <typename T>
std::vector<int64_t> Suppress(const ClassImage<T>& image, int64_t c, const Options& options,
                              const std::vector<bool>* skip) {
  std::vector<int64_t> kept;
  T threshold = static_cast<T>(options.nms_threshold);
  const T eta = static_cast<T>(options.eta);
  for (const Candidate& candidate : Candidates(image, c, options, skip)) {
    LookForInterrupt();
    bool keep = true;
    for (size_t k = 0; k < kept.size() && keep; ++k)
      keep = Overlap(image.Box(c, candidate.box), image.Box(c, kept[k]), image.box_size,
                     options.normalized) <= threshold;
    if (!keep) continue;
    kept.push_back(candidate.box);
    if (eta < 1 && threshold > T(0.5)) threshold *= eta;
  }
  if (!image.shared) std::sort(kept.begin(), kept.end());
  return kept;
}

// The best `keep_top_k` over all classes, by class.
template <typename T>
void KeepBest(const ClassImage<T>& image, int64_t keep, std::vector<Pick>* picks) {
  std::vector<Candidate> order;  // `box` is a place in picks
  for (size_t i = 0; i < picks->size(); ++i)
    order.push_back({static_cast<float>(image.Score((*picks)[i].label, (*picks)[i].box)),
                     static_cast<int64_t>(i)});
  SortByScore(&order);
  order.resize(static_cast<size_t>(keep));
  std::map<int64_t, std::vector<int64_t>> by_class;
  for (const Candidate& c : order) {
    LookForInterrupt();
    const Pick& p = (*picks)[static_cast<size_t>(c.box)];
    by_class[p.label].push_back(p.box);
  }
  picks->clear();
  for (auto& [label, boxes] : by_class) {
    if (!image.shared) std::sort(boxes.begin(), boxes.end());
    for (int64_t box : boxes) picks->push_back({label, box});
  }
}

// Averages boxes with the one before that they overlap, weighted by scores, which add up; says
// which boxes went into another one.
template <typename T>
std::vector<bool> MergeNeighbours(const Options& options, int64_t count, int64_t size, T* boxes,
                                  T* scores) {
  std::vector<bool> merged(static_cast<size_t>(count), true);
  int64_t at = -1;
  for (const int64_t i : Watched(count)) {
    T *box = boxes + i * size, *into = boxes + at * size;
    if (at >= 0 &&
        Overlap(box, into, size, options.normalized) > static_cast<T>(options.nms_threshold)) {
      for (int64_t k = 0; k < size; ++k)
        into[k] = (box[k] * scores[i] + into[k] * scores[at]) / (scores[i] + scores[at]);
      scores[at] += scores[i];
      continue;
    }
    if (at >= 0) merged[static_cast<size_t>(at)] = false;
    at = i;
  }
  if (at >= 0) merged[static_cast<size_t>(at)] = false;
  return merged;
}

template <typename T>
std::vector<Pick> PickFrom(const ClassImage<T>& image, const Options& options, bool merge, T* boxes,
                           T* scores) {
  std::vector<Pick> picks;
  for (const int64_t c : Watched(image.classes)) {
    if (c == options.background) continue;
    std::vector<bool> merged;
    if (merge)
      merged =
          MergeNeighbours(options, image.count, image.box_size, boxes, scores + c * image.count);
    for (int64_t box : Suppress(image, c, options, merge ? &merged : nullptr))
      picks.push_back({c, box});
  }
  if (options.keep_top_k > -1 && std::ssize(picks) > options.keep_top_k)
    KeepBest(image, options.keep_top_k, &picks);
  return picks;
}

// Offsets of the boxes of each image, for scores [boxes, classes].
Result<Offsets> OffsetsOfImages(const KernelContext& ctx, const Tensor& boxes, bool has_numbers) {
  const Tensor* numbers = has_numbers ? ctx.InOpt("RoisNum") : nullptr;
  if (numbers == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(boxes, "BBoxes"));
    return *offsets;
  }
  Offsets offsets{0};
  for (int64_t n : ToInts(*numbers)) {
    if (n < 0) return OutOfRange("RoisNum holds ", n);
    offsets.push_back(offsets.back() + static_cast<size_t>(n));
  }
  if (static_cast<int64_t>(offsets.back()) > boxes.dim(0))
    return OutOfRange("RoisNum counts ", offsets.back(), " boxes, BBoxes has ", boxes.dim(0));
  return offsets;
}

// A box is two corners, or a polygon of as many points as Paddle knows.
bool IsBoxSize(int64_t size) {
  return size == 4 || size == 8 || size == 16 || size == 24 || size == 32;
}

Status CheckScores(const Tensor& boxes, const Tensor& scores) {
  const bool three = scores.rank() == 3;
  if (boxes.rank() == 3 && IsBoxSize(boxes.dim(2)) && (three || scores.rank() == 2) &&
      boxes.dtype() == scores.dtype() &&
      (three ? boxes.dim(0) == scores.dim(0) && boxes.dim(1) == scores.dim(2)
             : boxes.dim(0) == scores.dim(0) && boxes.dim(1) == scores.dim(1)))
    return Status::Ok();
  return InvalidArgument("BBoxes ", boxes.shape().ToString(), " do not fit Scores ",
                         scores.shape().ToString());
}

// Detections: rows of label, score and box, and the offsets of the images.
template <typename T>
struct Found {
  std::vector<T> rows;
  std::vector<int32_t> index;
  Offsets offsets{0};
};

template <typename T>
void Append(const ClassImage<T>& image, const std::vector<Pick>& picks, int64_t first,
            Found<T>* found) {
  for (const Pick& p : picks) {
    LookForInterrupt();
    found->rows.push_back(static_cast<T>(p.label));
    found->rows.push_back(image.Score(p.label, p.box));
    const T* box = image.Box(p.label, p.box);
    found->rows.insert(found->rows.end(), box, box + image.box_size);
    found->index.push_back(
        static_cast<int32_t>(first + (image.shared ? p.box : p.box * image.classes + p.label)));
  }
  found->offsets.push_back(found->offsets.back() + picks.size());
}

template <typename T>
Result<Found<T>> Search(const KernelContext& ctx, bool merge, bool has_numbers) {
  Tensor boxes = ctx.In("BBoxes"), scores = ctx.In("Scores");
  HEDDLE_RETURN_IF_ERROR(CheckScores(boxes, scores));
  if (merge) {  // on copies
    if (scores.rank() != 3) return InvalidArgument("Scores must be [N, C, M]");
    boxes = boxes.Clone();
    scores = scores.Clone();
    if (!boxes.initialized() || !scores.initialized()) return ResourceExhausted("no memory");
  }
  const Options options(ctx);
  Found<T> found;
  const int64_t size = boxes.dim(2);
  if (scores.rank() == 3) {
    const int64_t classes = scores.dim(1), count = scores.dim(2);
    for (const int64_t n : Watched(scores.dim(0))) {
      const ClassImage<T> image{scores.data<T>() + n * classes * count,
                                boxes.data<T>() + n * count * size,
                                count,
                                classes,
                                size,
                                true};
      T* mutable_boxes = merge ? boxes.mutable_data<T>() + n * count * size : nullptr;
      T* mutable_scores = merge ? scores.mutable_data<T>() + n * classes * count : nullptr;
      Append(image, PickFrom(image, options, merge, mutable_boxes, mutable_scores), n * count,
             &found);
    }
    return found;
  }
  const int64_t classes = scores.dim(1);
  HEDDLE_ASSIGN_OR_RETURN(const Offsets offsets, OffsetsOfImages(ctx, boxes, has_numbers));
  for (const int64_t n : Watched(SequenceCount(offsets))) {
    const int64_t begin = Begin(offsets, n);
    const ClassImage<T> image{scores.data<T>() + begin * classes,
                              boxes.data<T>() + begin * classes * size,
                              Length(offsets, n),
                              classes,
                              size,
                              false};
    Append(image, PickFrom<T>(image, options, false, nullptr, nullptr), begin * classes, &found);
  }
  return found;
}

template <typename T>
void PutRows(const KernelContext& ctx, const Found<T>& found, int64_t width) {
  Tensor& out = ctx.Alloc("Out", kDTypeOf<T>, Shape{std::ssize(found.index), width});
  std::copy(found.rows.begin(), found.rows.end(), out.mutable_data<T>());
}

void PutIndex(const KernelContext& ctx, const std::vector<int32_t>& index) {
  if (!ctx.HasOut("Index")) return;
  Tensor& to = ctx.Alloc("Index", DType::kI32, Shape{std::ssize(index), 1});
  std::copy(index.begin(), index.end(), to.mutable_data<int32_t>());
}

// Without an index, nothing found is one element, -1.
template <typename T, bool kMerge>
Status RunPlain(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(Found<T> found, Search<T>(ctx, kMerge, false));
  if (found.index.empty()) {
    Tensor& out = ctx.Alloc("Out", kDTypeOf<T>, Shape{1, 1});
    *out.mutable_data<T>() = T(-1);
    out.set_lod({{0, 1}});
    return Status::Ok();
  }
  PutRows(ctx, found, ctx.In("BBoxes").dim(2) + 2);
  ctx.Out("Out").set_lod({found.offsets});
  return Status::Ok();
}
template <typename T>
struct Nms {
  static Status Run(KernelContext& ctx) { return RunPlain<T, false>(ctx); }
};
template <typename T>
struct LocalityAwareNms {
  static Status Run(KernelContext& ctx) { return RunPlain<T, true>(ctx); }
};

template <typename T>
struct Nms2 {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(Found<T> found, Search<T>(ctx, false, false));
    PutRows(ctx, found, ctx.In("BBoxes").dim(2) + 2);
    ctx.Out("Out").set_lod({found.offsets});
    PutIndex(ctx, found.index);
    if (ctx.HasOut("Index")) ctx.Out("Index").set_lod({found.offsets});
    return Status::Ok();
  }
};

template <typename T>
struct Nms3 {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(Found<T> found, Search<T>(ctx, false, true));
    PutRows(ctx, found, ctx.In("BBoxes").dim(2) + 2);
    PutIndex(ctx, found.index);
    if (!ctx.HasOut("NmsRoisNum")) return Status::Ok();
    const int64_t images = SequenceCount(found.offsets);
    Tensor& numbers = ctx.Alloc("NmsRoisNum", DType::kI32, Shape{images});
    for (int64_t i = 0; i < images; ++i)
      numbers.mutable_data<int32_t>()[i] = static_cast<int32_t>(Length(found.offsets, i));
    return Status::Ok();
  }
};

void DefineNms(OpDef& op, int background) {
  op.Input("BBoxes").Input("Scores").Output("Out");
  op.Attr("background_label", background).Attr("score_threshold", 0.0).Attr("nms_top_k", -1);
  op.Attr("nms_threshold", 0.3).Attr("nms_eta", 1.0).Attr("keep_top_k", -1);
  op.Attr("normalized", true).KernelKey("Scores");
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(multiclass_nms) {
  op.Doc("boxes of each class that no better one overlaps, as rows of label, score and box");
  DefineNms(op, 0);
  op.Kernels<Nms, float, double>();
}
HEDDLE_OP(multiclass_nms2) {
  DefineNms(op, 0);
  op.Output("Index", kOptional).Kernels<Nms2, float, double>();
}
HEDDLE_OP(multiclass_nms3) {
  DefineNms(op, 0);
  op.Input("RoisNum", kOptional).Output("Index", kOptional).Output("NmsRoisNum", kOptional);
  op.Kernels<Nms3, float, double>();
}
HEDDLE_OP(locality_aware_nms) {
  op.Doc("merges boxes with neighbours that they overlap, then as multiclass_nms");
  DefineNms(op, -1);
  op.Kernels<LocalityAwareNms, float, double>();
}

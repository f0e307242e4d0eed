// matrix_nms: lowers scores by the overlap with better boxes instead of removing boxes one by one.
#include <cmath>
#include <numeric>

#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/shape_checks.h"
#include "kernels/detection/boxes.h"

namespace heddle {
namespace {

struct MatrixOptions {
  double score_threshold, post_threshold, sigma;
  int64_t nms_top_k, keep_top_k, background;
  bool gaussian, normalized;

  explicit MatrixOptions(const OpContext& ctx)
      : score_threshold(ctx.Float("score_threshold")),
        post_threshold(ctx.Float("post_threshold")),
        sigma(ctx.Float("gaussian_sigma")),
        nms_top_k(ctx.Int("nms_top_k")),
        keep_top_k(ctx.Int("keep_top_k")),
        background(ctx.Int("background_label")),
        gaussian(ctx.Bool("use_gaussian")),
        normalized(ctx.Bool("normalized")) {}
};

template <typename T>
struct Detection {
  T label, score;
  int32_t box;
};

template <typename T>
T Decay(const MatrixOptions& options, T overlap, T max_overlap) {
  if (options.gaussian)
    return std::exp((max_overlap * max_overlap - overlap * overlap) *
                    static_cast<T>(static_cast<float>(options.sigma)));
  return static_cast<T>((1.0 - overlap) / (1.0 - max_overlap));
}

// The boxes of one class above the threshold, best first.
template <typename T>
std::pmr::vector<int32_t> Best(const MatrixOptions& options, const T* scores, int64_t count,
                               CallHeap* heap) {
  std::pmr::vector<int32_t> order(heap);
  const T threshold = static_cast<T>(options.score_threshold);
  for (const auto part : Stretches(count))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (!(scores[i] <= threshold)) order.push_back(static_cast<int32_t>(i));
  int64_t keep = std::ssize(order);
  if (options.nms_top_k > -1) keep = std::min(keep, options.nms_top_k);
  LookCount looks;
  std::partial_sort(order.begin(), order.begin() + keep, order.end(),
                    looks.In([&](int32_t a, int32_t b) { return scores[a] > scores[b]; }));
  order.resize(static_cast<size_t>(keep));
  return order;
}

template <typename T>
void OneClass(const KernelContext& ctx, const MatrixOptions& options, const T* boxes,
              const T* scores, int64_t count, int64_t size, int64_t label,
              std::pmr::vector<Detection<T>>* found) {
  CallHeap heap(ctx);
  const std::pmr::vector<int32_t> order = Best(options, scores, count, &heap);
  const size_t n = order.size();
  const T post = static_cast<T>(options.post_threshold);
  std::pmr::vector<T> max_overlap(n, T(0), &heap), overlap(n, &heap);
  for (size_t i = 0; i < n; ++i) {
    T decay = 1;
    for (size_t j = 0; j < i; ++j) {
      overlap[j] = BoxOverlap(boxes + order[i] * size, boxes + order[j] * size, options.normalized);
      max_overlap[i] = std::max(max_overlap[i], overlap[j]);
      decay = std::min(decay, Decay(options, overlap[j], max_overlap[j]));
    }
    const T score = decay * scores[order[i]];
    if (!(score <= post)) found->push_back({static_cast<T>(label), score, order[i]});
  }
}

template <typename T>
struct MatrixNms {
  static Status Run(KernelContext& ctx) {
    const Tensor &boxes = ctx.In("BBoxes"), &scores = ctx.In("Scores");
    if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dim(0) != scores.dim(0) ||
        boxes.dim(1) != scores.dim(2) || boxes.dim(2) < 4 || boxes.dtype() != scores.dtype())
      return InvalidArgument("BBoxes ", boxes.shape().ToString(), " do not fit Scores ",
                             scores.shape().ToString());
    const MatrixOptions options(ctx);
    const int64_t images = scores.dim(0), classes = scores.dim(1), count = scores.dim(2);
    const int64_t size = boxes.dim(2);
    CallHeap heap(ctx);
    std::pmr::vector<T> rows(&heap);
    std::pmr::vector<int32_t> index(&heap), numbers(&heap);
    for (const int64_t n : Watched(images)) {
      const T* box = boxes.data<T>() + n * count * size;
      CallHeap of_image(ctx);
      std::pmr::vector<Detection<T>> found(&of_image);
      for (int64_t c = 0; c < classes; ++c)
        if (c != options.background)
          OneClass(ctx, options, box, scores.data<T>() + (n * classes + c) * count, count, size, c,
                   &found);
      SortAndCut(options.keep_top_k, &of_image, &found);
      numbers.push_back(static_cast<int32_t>(found.size()));
      for (const Detection<T>& d : found) {
        rows.insert(rows.end(), {d.label, d.score});
        rows.insert(rows.end(), box + d.box * size, box + (d.box + 1) * size);
        index.push_back(static_cast<int32_t>(n * count) + d.box);
      }
    }
    Put(ctx, "Out", rows, Shape{std::ssize(index), size + 2});
    Put(ctx, "Index", index, Shape{std::ssize(index), 1});
    Put(ctx, "RoisNum", numbers, Shape{images});
    return Status::Ok();
  }

  static void SortAndCut(int64_t keep_top_k, CallHeap* heap,
                         std::pmr::vector<Detection<T>>* found) {
    int64_t keep = std::ssize(*found);
    if (keep_top_k > -1) keep = std::min(keep, keep_top_k);
    std::pmr::vector<size_t> order(found->size(), heap);
    std::iota(order.begin(), order.end(), size_t{0});
    LookCount looks;
    std::partial_sort(
        order.begin(), order.begin() + keep, order.end(),
        looks.In([&](size_t a, size_t b) { return (*found)[a].score > (*found)[b].score; }));
    std::pmr::vector<Detection<T>> sorted(heap);
    for (int64_t i = 0; i < keep; ++i) sorted.push_back((*found)[order[static_cast<size_t>(i)]]);
    *found = std::move(sorted);
  }
  template <typename V>
  static void Put(const KernelContext& ctx, Key slot, const std::pmr::vector<V>& values,
                  const Shape& shape) {
    if (!ctx.HasOut(slot)) return;
    std::copy(values.begin(), values.end(),
              ctx.Alloc(slot, kDTypeOf<V>, shape).template mutable_data<V>());
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(matrix_nms) {
  op.Doc("scores lowered by the overlap with better boxes; rows of label, score and box");
  op.Input("BBoxes").Input("Scores").Output("Out").Output("Index").Output("RoisNum", kOptional);
  op.Attr("score_threshold", 0.0).Attr("nms_top_k", -1).Attr("keep_top_k", -1);
  op.Attr("post_threshold", 0.0).Attr("use_gaussian", false).Attr("gaussian_sigma", 2.0);
  op.Attr("background_label", 0).Attr("normalized", true);
  op.Kernels<MatrixNms, float, double>();
}

HEDDLE_EXAMPLES(matrix_nms, R"(
example float32 1x4x4, keep_top_k 6, nms_top_k -1, score_threshold 0.1, use_gaussian
attr keep_top_k INT 6
attr nms_top_k INT -1
attr score_threshold FLOAT 0.1
attr use_gaussian BOOLEAN true
in BBoxes float32 [1, 4, 4] 5 2.8 11 8 5.8 12.5 4.3 8.8 7.3 10.3 2 9.5 1.3 11.8 6.5 3.5
in Scores float32 [1, 4, 4] 0.271 0.119 0.475 0.169 0.373 0.678 0.424 0.831 0.525 0.78 0.22 0.729
  0.322 0.576 0.881 0.627
out Index int32 [6, 1] 2 3 1 3 1 3
out Out float32 [6, 6] 3 0.881 7.3 10.3 2 9.5 1 0.831 1.3 11.8 6.5 3.5 2 0.78 5.8 12.5 4.3 8.8 2
  0.729 1.3 11.8 6.5 3.5 1 0.678 5.8 12.5 4.3 8.8 3 0.627 1.3 11.8 6.5 3.5
out RoisNum int32 [1] 6

example float32 3x5x4, keep_top_k 200, nms_top_k 400, post_threshold 2
attr keep_top_k INT 200
attr nms_top_k INT 400
attr post_threshold FLOAT 2.0
attr score_threshold FLOAT 0.01
in BBoxes float32 [3, 5, 4] 0.311 0.902 0.033 0.607 0.623 0.23 0.59 0.738 0.951 0.377 0.639 0.934
  0.18 0.803 0.246 0.262 0.426 0.525 0.967 0.016 0.721 0.41 0.984 0.098 0.869 0.148 0.787 0.705 0.82
  0.754 0.885 0.393 0.836 0.918 0.443 0.689 0.115 0.131 0.197 0.541 0.213 0.328 0.344 0.574 0.77
  0.557 0.082 0.164 0.066 0.279 0.492 0.459 0.049 0.508 0.475 0.361 0.672 0.852 0.295 0.656
in Scores float32 [3, 2, 5] 0.0574 0.0248 0.0835 0.0335 0.0748 0.0552 0.0617 0.0531 0.0791 0.0487
  0.0639 0.0444 0.0878 0.0292 0.0379 0.0661 0.0357 0.0704 0.0465 0.0813 0.0509 0.0422 0.0769 0.04
  0.0314 0.0596 0.027 0.0726 0.0856 0.0683
out Index int32 [0, 1]
out Out float32 [0, 6]
out RoisNum int32 [3] 0 0 0

example float64 1x4x4, keep_top_k 6, nms_top_k -1, score_threshold 0.1, use_gaussian
attr keep_top_k INT 6
attr nms_top_k INT -1
attr score_threshold FLOAT 0.1
attr use_gaussian BOOLEAN true
in BBoxes float64 [1, 4, 4] 5 2.8 11 8 5.8 12.5 4.3 8.8 7.3 10.3 2 9.5 1.3 11.8 6.5 3.5
in Scores float64 [1, 4, 4] 0.271 0.119 0.475 0.169 0.373 0.678 0.424 0.831 0.525 0.78 0.22 0.729
  0.322 0.576 0.881 0.627
out Index int32 [6, 1] 2 3 1 3 1 3
out Out float64 [6, 6] 3 0.881 7.3 10.3 2 9.5 1 0.831 1.3 11.8 6.5 3.5 2 0.78 5.8 12.5 4.3 8.8 2
  0.729 1.3 11.8 6.5 3.5 1 0.678 5.8 12.5 4.3 8.8 3 0.627 1.3 11.8 6.5 3.5
out RoisNum int32 [1] 6
)")

// matrix_nms: lowers scores by the overlap with better boxes instead of removing boxes one by one.
#include <cmath>
#include <numeric>

#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"
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
                    looks.In([&](int32_t a, int32_t b) { return Greater(scores[a], scores[b]); }));
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
    std::partial_sort(order.begin(), order.begin() + keep, order.end(),
                      looks.In([&](size_t a, size_t b) {
                        return Greater((*found)[a].score, (*found)[b].score);
                      }));
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

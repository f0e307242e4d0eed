// nms: greedy non-maximum suppression of boxes that are sorted by score.
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// Whether the intersection over union is above the threshold; areas may be negative here.
template <typename T>
bool Overlaps(const T* a, const T* b, float threshold) {
  const T w = std::max(T(0), std::min(a[2], b[2]) - std::max(a[0], b[0]));
  const T h = std::max(T(0), std::min(a[3], b[3]) - std::max(a[1], b[1]));
  const T area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]);
  return w * h / (area_a + area_b - w * h) > static_cast<T>(threshold);
}

template <typename T>
struct PlainNms {
  static Status Run(KernelContext& ctx) {
    const Tensor& boxes = ctx.In("Boxes");
    if (boxes.rank() != 2 || boxes.dim(1) != 4)
      return InvalidArgument("Boxes must be [N, 4], not ", boxes.shape().ToString());
    const T* box = boxes.data<T>();
    const int64_t n = boxes.dim(0);
    const auto threshold = static_cast<float>(ctx.Float("iou_threshold"));
    CallHeap heap(ctx);
    std::pmr::vector<bool> gone(static_cast<size_t>(n), false, &heap);
    std::pmr::vector<int64_t> kept(&heap);
    for (const int64_t i : Watched(n)) {
      if (gone[static_cast<size_t>(i)]) continue;
      kept.push_back(i);
      for (int64_t j = i + 1; j < n; ++j)
        if (Overlaps(box + i * 4, box + j * 4, threshold)) gone[static_cast<size_t>(j)] = true;
    }
    Tensor& out = ctx.Alloc("KeepBoxesIdxs", DType::kI64, Shape{std::ssize(kept)});
    std::copy(kept.begin(), kept.end(), out.mutable_data<int64_t>());
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(nms) {
  op.Doc("the boxes, in order, that no earlier kept one overlaps").Input("Boxes");
  op.Output("KeepBoxesIdxs").Attr("iou_threshold", 1.0).Kernels<PlainNms, float, double>();
}

HEDDLE_EXAMPLES(nms, R"(
example float64 3x4, iou_threshold 0.5
attr iou_threshold FLOAT 0.5
in Boxes float64 [3, 4] 0.44 1.32 1.2 0.82 0.31 0.69 0.94 1.57 0.19 1.45 1.07 0.56
out KeepBoxesIdxs int64 [3] 0 1 2

example float32 16x4, iou_threshold 0.5
attr iou_threshold FLOAT 0.5
in Boxes float32 [16, 4] 1.16 1.07 0.43 0.69 1.1 1.4 1.17 0.76 0.06 0.1 0.98 0.05 1.39 1.23 1.63
  0.86 1.69 1.28 0.71 0.96 1.23 1.05 0.36 0.5 0.17 1.35 0.68 0.16 1.08 1.53 0.02 1.22 1.52 0.47 0.47
  0.94 0.55 1.52 1.13 0.87 1.4 0.15 1.3 0.95 1.15 1.2 0.92 1.5 1.31 1.67 0.84 1.73 0.96 0.13 0.85
  0.82 0.48 1.04 0.38 0.91 1.18 0.62 0.88 0.14
out KeepBoxesIdxs int64 [16] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
)")

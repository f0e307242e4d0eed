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

// iou_similarity: intersection over union of all pairs of two sets of boxes.
#include "kernels/base/shape_checks.h"
#include "kernels/detection/box_slots.h"

namespace heddle {
namespace {

Status InferIou(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckBoxes(ctx, "X"));
  HEDDLE_RETURN_IF_ERROR(CheckBoxes(ctx, "Y"));
  const Shape &x = ctx.InShape("X"), &y = ctx.InShape("Y");
  if (!x.known_rank() || !y.known_rank()) return ctx.Defer();
  if (ctx.InDType("X") != ctx.InDType("Y"))
    return InvalidArgument("X and Y must have the same dtype");
  ctx.SetOut("Out", Shape{x[0], y[0]}, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

template <typename T>
T PairOverlap(const T* a, const T* b, T extra) {
  const T w = std::max(T(0), std::min(a[2], b[2]) - std::max(a[0], b[0]) + extra);
  const T h = std::max(T(0), std::min(a[3], b[3]) - std::max(a[1], b[1]) + extra);
  const T both = w * h;
  const T all = (a[2] - a[0] + extra) * (a[3] - a[1] + extra) +
                (b[2] - b[0] + extra) * (b[3] - b[1] + extra) - both;
  return both / all;
}

template <typename T>
struct IouSimilarity {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
    const T extra = ctx.Bool("box_normalized") ? T(0) : T(1);
    const T *a = x.data<T>(), *b = y.data<T>();
    const int64_t cols = y.dim(0);
    T* out = ctx.Out("Out").template mutable_data<T>();
    ForEachIndex(ctx, x.dim(0) * cols, [=](int64_t i) {
      out[i] = PairOverlap(a + i / cols * 4, b + i % cols * 4, extra);
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(iou_similarity) {
  op.Doc("intersection over union of every pair of boxes")
      .Input("X")
      .Input("Y")
      .Output("Out")
      .Attr("box_normalized", true)
      .InferShape(InferIou)
      .Kernels<IouSimilarity, float, double>();
}

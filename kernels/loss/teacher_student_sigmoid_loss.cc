// A loss whose labels hold both a click and a teacher's score.
#include <algorithm>

#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// Label < -1: no click, no teacher; < 0: click, no teacher; < 1: no click, and the label is the
// teacher's score; else: click, and the score is the label less 1.
template <typename T>
T LossOf(T x, T label) {
  const T common = std::max(x, T(0)) + std::log(T(1) + std::exp(-std::abs(x)));
  if (label < T(-1)) return common;
  if (label < T(0)) return common - x;
  if (label < T(1)) return common + common - x * label;
  return common - x + common - x * (label - T(1));
}

template <typename T>
T SlopeOf(T x, T label, T low, T high) {
  if (x < low || x > high) return T(0);
  const T p = SigmoidOf(x);
  if (label < T(-1)) return p;
  if (label < T(0)) return p - T(1);
  return T(2) * p - label;
}

Status LossShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Label"));
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  ctx.SetOut("Y", {x.dim(0), 1}, ctx.InDType("X"));
  ctx.ShareLoD("X", "Y");
  return Status::Ok();
}

template <typename T>
struct TeacherLoss {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    Tensor& out = ctx.Out("Y");
    if (out.numel() != x.numel())
      return InvalidArgument("X has shape ", x.shape().ToString(), ", expected [n, 1]");
    ForEachIndex(
        ctx, x.numel(),
        [y = out.mutable_data<T>(), a = x.data<T>(),
         label = ctx.In("Label").template data<T>()](int64_t i) { y[i] = LossOf(a[i], label[i]); });
    return Status::Ok();
  }
};

Status LossGradShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Label"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Y@GRAD"));
  ctx.SetOut("X@GRAD", ctx.InShape("X"), ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct TeacherLossGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const T low = static_cast<T>(ctx.Float("soft_max_lower_bound"));
    const T high = static_cast<T>(ctx.Float("soft_max_up_bound"));
    T* out = ctx.Out("X@GRAD").template mutable_data<T>();
    ForEachIndex(ctx, x.numel(),
                 [=, a = x.data<T>(), label = ctx.In("Label").template data<T>(),
                  d = ctx.In("Y@GRAD").template data<T>()](int64_t i) {
                   out[i] = SlopeOf(a[i], label[i], low, high) * d[i];
                 });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(teacher_student_sigmoid_loss) {
  op.Doc("sigmoid loss of clicks and of a teacher's scores");
  op.Input("X").Input("Label").Output("Y").InferShape(LossShape);
  op.Attr("soft_max_up_bound", 15.0).Attr("soft_max_lower_bound", -15.0);
  op.Kernels<TeacherLoss, float, double>();
}
HEDDLE_OP(teacher_student_sigmoid_loss_grad) {
  op.Input("X").Input("Label").Input("Y@GRAD").Output("X@GRAD").InferShape(LossGradShape);
  op.Attr("soft_max_up_bound", 15.0).Attr("soft_max_lower_bound", -15.0);
  op.Kernels<TeacherLossGrad, float, double>();
}

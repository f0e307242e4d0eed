// box_decoder_and_assign: decodes a box per class and picks the one of the best class.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferDecoded(ShapeContext& ctx) {
  const Shape &prior = ctx.InShape("PriorBox"), &target = ctx.InShape("TargetBox");
  const Shape& score = ctx.InShape("BoxScore");
  if (!prior.is_static() || !target.is_static() || !score.is_static()) return ctx.Defer();
  if (prior.rank() != 2 || prior[1] != 4 || target.rank() != 2 || score.rank() != 2 ||
      target[0] != prior[0] || score[0] != prior[0] || target[1] != score[1] * 4)
    return InvalidArgument("PriorBox ", prior.ToString(), ", TargetBox ", target.ToString(),
                           " and BoxScore ", score.ToString(), " do not fit each other");
  ctx.SetOut("DecodeBox", target, ctx.InDType("TargetBox"));
  ctx.SetOut("OutputAssignBox", Shape{prior[0], 4}, ctx.InDType("TargetBox"));
  ctx.ShareLoD("TargetBox", "DecodeBox");
  ctx.ShareLoD("TargetBox", "OutputAssignBox");
  return Status::Ok();
}

template <typename T>
void DecodeClass(const T* prior, const T* variance, const T* target, T limit, T* out) {
  const T w = prior[2] - prior[0] + T(1), h = prior[3] - prior[1] + T(1);
  const T x = variance[0] * target[0] * w + prior[0] + w / 2;
  const T y = variance[1] * target[1] * h + prior[1] + h / 2;
  const T tw = std::exp(std::min(variance[2] * target[2], limit)) * w;
  const T th = std::exp(std::min(variance[3] * target[3], limit)) * h;
  const T box[4] = {x - tw / 2, y - th / 2, x + tw / 2 - T(1), y + th / 2 - T(1)};
  std::copy(box, box + 4, out);
}

// The box of the best class but the first; the prior where no score is above -1.
template <typename T>
struct DecodeAndAssign {
  static Status Run(KernelContext& ctx) {
    const Tensor &prior = ctx.In("PriorBox"), &target = ctx.In("TargetBox");
    const Tensor &score = ctx.In("BoxScore"), &variance = ctx.In("PriorBoxVar");
    for (const Tensor* t : {&target, &score, &variance})
      if (t->dtype() != prior.dtype()) return InvalidArgument("the operands differ in dtype");
    if (variance.numel() < 4) return InvalidArgument("PriorBoxVar must have 4 values");
    const int64_t classes = score.dim(1);
    const T limit = static_cast<T>(ctx.Float("box_clip"));
    T* decoded = ctx.Out("DecodeBox").template mutable_data<T>();
    T* assigned = ctx.Out("OutputAssignBox").template mutable_data<T>();
    for (const int64_t i : Watched(prior.dim(0))) {
      const T* box = prior.data<T>() + i * 4;
      int64_t best = 0;
      T best_score = -1;
      for (int64_t j = 0; j < classes; ++j) {
        const int64_t at = i * classes + j;
        DecodeClass(box, variance.data<T>(), target.data<T>() + at * 4, limit, decoded + at * 4);
        if (j > 0 && score.data<T>()[at] > best_score) best_score = score.data<T>()[at], best = j;
      }
      const T* from = best > 0 ? decoded + (i * classes + best) * 4 : box;
      std::copy(from, from + 4, assigned + i * 4);
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(box_decoder_and_assign) {
  op.Doc("decodes the boxes of all classes and picks the one of the best class");
  op.Input("PriorBox").Input("PriorBoxVar").Input("TargetBox").Input("BoxScore");
  op.Output("DecodeBox").Output("OutputAssignBox").Attr("box_clip", 4.135);
  op.InferShape(InferDecoded).Kernels<DecodeAndAssign, float, double>();
}

#include <algorithm>

#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status ProximalShape(ShapeContext& ctx) { return InferUpdate(ctx, {{"Param", "ParamOut"}}); }

// A step of gradient descent, then shrinking towards 0 by l1 and l2.
template <typename T>
struct ProximalGd {
  static Status Run(KernelContext& ctx) {
    const Tensor& param = ctx.In("Param");
    HEDDLE_ASSIGN_OR_RETURN(const double rate, ScalarOf(ctx, "LearningRate"));
    const T lr = static_cast<T>(rate), l1 = static_cast<T>(ctx.Float("l1")),
            l2 = static_cast<T>(ctx.Float("l2"));
    T* out = ctx.Out("ParamOut").template mutable_data<T>();
    ForEachIndex(ctx, param.numel(),
                 [=, p = param.data<T>(), g = ctx.In("Grad").template data<T>()](int64_t i) {
                   const T step = p[i] - lr * g[i];
                   const T size =
                       l1 > 0 ? std::max(std::abs(step) - lr * l1, T(0)) : std::abs(step);
                   out[i] = std::copysign(size, step) / (T(1) + lr * l2);
                 });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(proximal_gd) {
  op.Doc("gradient descent with l1 and l2 penalties");
  op.Input("Param").Input("Grad").Input("LearningRate").Output("ParamOut");
  op.Inplace("Param", "ParamOut").Attr("l1", 0.0).Attr("l2", 0.0);
  op.InferShape(ProximalShape).Kernels<ProximalGd, float, double>();
}

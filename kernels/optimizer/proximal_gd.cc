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

HEDDLE_EXAMPLES(proximal_gd, R"(
example float64
attr l1 FLOAT 0.25
attr l2 FLOAT 2.0
in Param float64 [2, 3] 0.27 0.63 -0.61 0.79 0.08 -0.5
in Grad float64 [2, 3] -0.17 0.27 -0.47 0.02 0.23 0.21
in LearningRate float64 [1] 0.5
from elementwise_mul X=Grad Y=LearningRate -> Out=step
from elementwise_sub X=Param Y=step -> Out=moved
from softshrink X=moved -> Out=shrunk
attr lambda FLOAT 0.125
from scale X=shrunk -> Out=ParamOut
attr scale FLOAT 0.5
out ParamOut float64 [2, 3] 0.11500000000000002 0.185 -0.125 0.3275 0 -0.24

example float32
attr l1 FLOAT 0.3
attr l2 FLOAT 0.2
in Param float32 [2, 3] 0.68 -0.13 -0.24 -0.88 -0.63 0.27
in Grad float32 [2, 3] 0.24 0.53 -0.23 -0.96 0.03 -0.47
in LearningRate float32 [1] 0.1
out ParamOut float32 [2, 3] 0.61372554 -0.15 -0.18333332 -0.7392157 -0.5911765 0.28137255

example no penalties
in Param float32 [3] 0.46 0.32 -0.72
in Grad float32 [3] -0.02 0.62 0.48
in LearningRate float32 [1] 0.5
out ParamOut float32 [3] 0.47 0.00999999 -0.96000004
)")

// exponential: exponential numbers, in the memory of X.
#include <random>

#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/random/zero_grad.h"

namespace heddle {
namespace {

template <typename T>
struct Exponential {
  static Status Run(KernelContext& ctx) {
    Tensor& out = ctx.Out("Out");
    const double lambda = ctx.Float("lambda");
    if (!(lambda > 0)) return InvalidArgument("lambda must be positive, but is ", lambda);
    std::exponential_distribution<T> draw(static_cast<T>(lambda));
    for (const auto part : Stretches(out.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) out.mutable_data<T>()[i] = draw(ctx.random());
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(exponential) {
  op.Doc("Overwrites X with numbers of the exponential distribution.").Input("X").Output("Out");
  op.Traits(kRandom).Attr("lambda", 1.0).InferShape(SameShape);
  op.Kernels<Exponential, float, double>();
}

HEDDLE_OP(exponential_grad) { DefineZeroGrad(op); }

HEDDLE_EXAMPLES(exponential, R"(
example float32
random
attr lambda FLOAT 2.0
in X float32 [40, 50] 0*2000
out Out float32 [40, 50] mean 0.5 0.06 var 0.25 0.07 range 0 10

example float64
random
attr lambda FLOAT 2.0
in X float64 [40, 50] 0*2000
out Out float64 [40, 50] mean 0.5 0.06 var 0.25 0.07 range 0 10
)")

HEDDLE_EXAMPLES(exponential_grad, R"(
example float32
in Out@GRAD float32 [2, 3] 0.1 0.06 0.85 -0.51 -0.87 0.8
from fill_zeros_like X=Out@GRAD -> Out=X@GRAD
out X@GRAD float32 [2, 3] 0*6

example float64
in Out@GRAD float64 [2, 3] -0.54 0.89 -0.42 -0.18 -0.32 0.9
from fill_zeros_like X=Out@GRAD -> Out=X@GRAD
out X@GRAD float64 [2, 3] 0*6
)")

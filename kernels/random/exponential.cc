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

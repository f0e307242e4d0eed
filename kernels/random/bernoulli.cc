// bernoulli: ones with the given probabilities, zeros otherwise.
#include "core/interrupts.h"
#include "kernels/base/shape_arg.h"
#include "kernels/random/random.h"

namespace heddle {
namespace {

template <typename T>
struct Bernoulli {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    T* y = ctx.Out("Out").mutable_data<T>();
    std::uniform_real_distribution<T> even(0, 1);
    OpRandom random(ctx, ctx.Int("seed"));
    for (const int64_t i : Watched(x.numel())) {
      const T p = x.data<T>()[i];
      if (!(p >= T(0) && p <= T(1)))
        return InvalidArgument("X[", i, "], ", p, ", is not a probability");
      y[i] = even(*random) <= p ? T(1) : T(0);
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(bernoulli) {
  op.Doc("1 with probability X, else 0.").Input("X").Output("Out").Traits(kRandom).Attr("seed", 0);
  op.InferShape(SameShape).Kernels<Bernoulli, float, double>();
}

// poisson: Poisson numbers, each with a rate of its own.
#include <random>

#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/random/zero_grad.h"

namespace heddle {
namespace {

template <typename T>
struct Poisson {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    T* y = ctx.Out("Out").mutable_data<T>();
    for (const int64_t i : Watched(x.numel())) {
      const T mean = x.data<T>()[i];
      // The distribution draws ints again and again until one is in range.
      constexpr double kLargest = 1 << 30;
      if (!(mean >= T(0) && static_cast<double>(mean) <= kLargest))
        return InvalidArgument("X[", i, "], ", mean, ", is no mean from 0 to ", kLargest);
      if (mean == T(0)) {
        ctx.random()();  // as many draws as for any other mean
        y[i] = T(0);
      } else {
        y[i] = static_cast<T>(std::poisson_distribution<>(static_cast<double>(mean))(ctx.random()));
      }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(poisson) {
  op.Doc("Numbers of the Poisson distributions with means X.").Input("X").Output("Out");
  op.Traits(kRandom).InferShape(SameShape).Kernels<Poisson, float, double>();
}

HEDDLE_OP(poisson_grad) { DefineZeroGrad(op); }

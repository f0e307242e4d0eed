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

HEDDLE_EXAMPLES(poisson, R"(
example float32
random
in X float32 [40, 50] 3*2000
out Out float32 [40, 50] mean 3 0.2 var 3 0.4 range 0 20

example float64
random
in X float64 [40, 50] 3*2000
out Out float64 [40, 50] mean 3 0.2 var 3 0.4 range 0 20
)")

HEDDLE_EXAMPLES(poisson_grad, R"(
example float32
in Out@GRAD float32 [2, 3] -0.38 0.01 0.7 -0.41 0.35 -0.16
from fill_zeros_like X=Out@GRAD -> Out=X@GRAD
out X@GRAD float32 [2, 3] 0*6

example float64
in Out@GRAD float64 [2, 3] 0.27 0.87 -0.58 -0.33 0.32 -0.17
from fill_zeros_like X=Out@GRAD -> Out=X@GRAD
out X@GRAD float64 [2, 3] 0*6
)")

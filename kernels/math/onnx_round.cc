#include <cmath>

#include "core/shapes.h"
#include "kernels/elementwise/binary_op.h"

namespace heddle {
namespace {

// Halves go to the even neighbour, which is the processor's mode of rounding.
template <typename T>
struct RoundEven {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    const T* x = ctx.In("X").template data<T>();
    T* y = ctx.Out("Y").template mutable_data<T>();
    ctx.ParallelFor(ctx.In("X").numel(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        y[i] = static_cast<T>(std::nearbyint(static_cast<C>(x[i])));
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_round) {
  op.Doc("the nearest integer, halves to the even one");
  op.Input("X").Output("Y").Inplace("X", "Y").InferShape(&SameShape);
  op.Kernels<RoundEven, float, double, float16, bfloat16>();
}

#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/scalar_step.h"
#include "kernels/elementwise/tile_loop.h"

namespace heddle {
namespace {

struct NegatedGrad {
  static constexpr unsigned kUses = 0;
  template <typename T>
  static T Apply(T, T, T, T dout, double) {
    return SubFn::Apply(T(0), dout);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_sub) {
  DefineElementwise<SubFn, float, double, int32_t, int64_t, float16, bfloat16, int16_t,
                    std::complex<float>, std::complex<double>>(op, "x - y");
}

HEDDLE_OP(elementwise_sub_grad) {
  op.Doc("gradient of x - y");
  DefineElementwiseGrad<PassGrad, NegatedGrad, float, double, int32_t, int64_t, float16, bfloat16,
                        int16_t, std::complex<float>, std::complex<double>>(op, 0);
}

HEDDLE_SCALAR(elementwise_sub) = {2, &MakeIntegerScalar<SubFn>};

HEDDLE_TILE(elementwise_sub) { return BinaryTile<SubFn>(); }

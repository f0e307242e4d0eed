#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/scalar_step.h"
#include "kernels/elementwise/tile_loop.h"

HEDDLE_OP(elementwise_add) {
  DefineElementwise<AddFn, float, double, int32_t, int64_t, float16, bfloat16, int16_t, int8_t,
                    uint8_t, std::complex<float>, std::complex<double>>(op, "x + y");
}

HEDDLE_OP(grad_add) {
  DefineElementwise<AddFn, float, double, int32_t, int64_t, float16, bfloat16, int16_t,
                    std::complex<float>, std::complex<double>>(
      op, "sum of two gradients of one variable");
}

HEDDLE_OP(elementwise_add_grad) {
  op.Doc("gradient of x + y");
  DefineElementwiseGrad<PassGrad, PassGrad, float, double, int32_t, int64_t, float16, bfloat16,
                        int16_t, std::complex<float>, std::complex<double>>(op, 0);
}

HEDDLE_SCALAR(elementwise_add) = {2, &MakeIntegerScalar<AddFn>};

HEDDLE_TILE(elementwise_add) { return BinaryTile<AddFn>(); }
HEDDLE_TILE(grad_add) { return BinaryTile<AddFn>(); }

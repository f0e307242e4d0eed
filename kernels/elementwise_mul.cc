#include "kernels/common/arithmetic.h"
#include "kernels/common/binary_grad.h"

HEDDLE_OP(elementwise_mul) {
  DefineElementwise<MulFn, float, double, int32_t, int64_t, float16, bfloat16, bool,
                    std::complex<float>, std::complex<double>>(op, "x * y");
}

HEDDLE_OP(elementwise_mul_grad) {
  op.Doc("gradient of x * y");
  DefineElementwiseGrad<MulGradX, MulGradY, float, double, int32_t, int64_t, float16, bfloat16,
                        std::complex<float>, std::complex<double>>(op, kUsesX | kUsesY);
}

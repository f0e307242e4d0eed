// The exact sums behind operators on 8-bit integers: a kernel's state and its run.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/conv_ops/convolve.h"
#include "kernels/integers/integers.h"
#include "kernels/products/matmul_shape.h"
#include "kernels/quantize/quantized.h"

namespace heddle {

// The operands of a product or a convolution, under their names in an operator.
struct IntegerSlots {
  Key x, y, x_zero, y_zero;
};

struct IntegerSumsState final : KernelState {
  std::unique_ptr<IntegerRunner> runner;  // null: made in each run
  bool scaled = false;
};

// The state of a convolution whose filter and zero points are constants, else one without a runner.
Result<std::unique_ptr<KernelState>> PrepareConvSums(const PrepareContext& ctx,
                                                     const Convolution& c,
                                                     const IntegerSlots& slots);
// sums = the convolution of x - x_zero with y - y_zero.
Status RunConvSums(const KernelContext& ctx, const Convolution& c, const IntegerSlots& slots,
                   int32_t* sums);

// The state of a product whose second operand or its zero points are constants. `result` may be
// scaled: factors and offsets are given in each run.
Result<std::unique_ptr<KernelState>> PrepareProductSums(const PrepareContext& ctx,
                                                        const MatMulShape& shape,
                                                        const IntegerSlots& slots,
                                                        const IntegerResult& result = {});
// out = the product of x - x_zero and y - y_zero, as `result` says. x may have a zero point for
// each row, and y for each column, of each product of a batch; of a scaled result both have one for
// all, or y one for each column.
Status RunProductSums(const KernelContext& ctx, const MatMulShape& shape, const IntegerSlots& slots,
                      const IntegerOperands& scales, const IntegerResult& result, void* out);

// The same for an x that is no operand: of dtype uint8, with this zero point.
Status RunProductOf(const KernelContext& ctx, const MatMulShape& shape, const uint8_t* x,
                    int32_t x_zero, const IntegerSlots& slots, const IntegerOperands& scales,
                    const IntegerResult& result, void* out);

}  // namespace heddle

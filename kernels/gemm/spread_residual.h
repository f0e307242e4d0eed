// The residual of a fused product or convolution whose first dimension, the batch, is not that of
// the product: one of them is 1 and serves the whole batch of the other. Programs with an open
// batch dimension may get such feeds.
#pragma once

#include "heddle/shape.h"
#include "heddle/status.h"
#include "kernels/gemm/gemm_epilogue.h"

namespace heddle {

// The shape of product + residual. An error unless they are equal but for a batch of 1.
Result<Shape> ResidualSum(const Shape& product, const Shape& residual);

// Removes the residual and all that follows it from `epilogue`, and returns what follows: the
// product's own kernel applies the rest.
Epilogue TakeFromResidual(Epilogue* epilogue);

// out = late(product + residual). `out` may be the operand that has its shape.
void SpreadResidual(const Epilogue& late, const Shape& product_shape, const float* product,
                    const Shape& residual_shape, const float* residual, float* out);

}  // namespace heddle

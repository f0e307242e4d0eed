// Convolutions with TensorFlow's attributes and filters in terms of heddle's.
#pragma once

#include "kernels/conv/conv.h"

namespace heddle {

// Of an operator with the attributes that DeclareTfWindows() declares. Both shapes are static;
// `filter` is TensorFlow's: [spatial…, in / groups, out], or [H, W, in, multiplier] of a depthwise
// one.
Result<ConvGeometry> TfConvGeometry(const OpContext& ctx, const Shape& input, const Shape& filter,
                                    bool depthwise);

// heddle's filter: [out, in / groups, kernel…].
Shape HeddleFilter(const ConvGeometry& g);
// Copies a filter between the two orders. `heddle` is HeddleFilter(), elements have `size` bytes.
void TurnFilter(const KernelContext& ctx, const Shape& heddle, const void* from, void* to,
                size_t size, bool to_heddle);

}  // namespace heddle

// Parts of TensorFlow's operators: outputs of open shapes, and 16-bit floats in kernels that
// give their outputs memory themselves.
#pragma once

#include "core/kernel_context.h"
#include "core/shape_context.h"

namespace heddle {

// RunInFloat() for operators without a shape function: outputs that the float kernel made of
// float32 become those of the key operand's dtype.
Status RunInFloatAlloc(KernelContext& ctx);

// The operand as float, converted where it is something else.
Tensor InFloat(const KernelContext& ctx, const Tensor& t);

// For shape functions that wait for the contents of `dims`: `out` has as many dimensions as that
// has elements.
Status OpenShape(ShapeContext& ctx, Key dims, Key out, DType dtype);

}  // namespace heddle

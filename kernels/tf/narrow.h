// 16-bit floats in kernels that give their outputs memory themselves.
#pragma once

#include "core/op_context.h"

namespace heddle {

// RunInFloat() for operators without a shape function: outputs that the float kernel made of
// float32 become those of the key operand's dtype.
Status RunInFloatAlloc(KernelContext& ctx);

}  // namespace heddle

// Fused loops in programs that an earlier heddle wrote.
#pragma once

#include "core/attr.h"

namespace heddle::paddle {

// `ops` and `values` are attributes of fused_elementwise or fused_rows
// (kernels/elementwise/element_program.h). Where `values` lacks exactly the attributes that
// operators got later, adds their defaults. Other lists stay as they are, for the operator to
// refuse.
void AddLaterNumbers(const Strings& ops, Floats* values);

}  // namespace heddle::paddle

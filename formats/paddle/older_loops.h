// Reads fused loops in programs that an earlier version of heddle wrote.
#pragma once

#include "core/attr.h"

namespace heddle::paddle {

// `ops` and `values` are attributes of fused_elementwise or fused_rows
// (kernels/fused/element_program.h). If `values` lacks exactly the attributes that operators
// got later, their defaults are inserted. Any other list is left as it is, and the operator refuses
// it.
void AddLaterNumbers(const Strings& ops, Floats* values);

}  // namespace heddle::paddle

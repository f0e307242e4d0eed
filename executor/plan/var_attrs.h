// Attributes whose values are in variables of the program.
#pragma once

#include <vector>

#include "core/bound_op.h"

namespace heddle {

// Sets the attributes `var_attrs` of `op` from the operands after those of the definition's slots,
// one list of operands per attribute. All attributes of `op` are then in `*attrs`, which must live
// as long as they are used. An error if a variable is empty, or has values that the attribute
// cannot have.
Status ReadVarAttrs(const std::vector<int>& var_attrs, Value* const* frame, BoundOp* op,
                    std::vector<AttrValue>* attrs);

}  // namespace heddle

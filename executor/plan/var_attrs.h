// Attributes whose values are held by variables of the program.
#pragma once

#include <vector>

#include "core/op_context.h"

namespace heddle {

// Sets the attributes `var_attrs` of `op` from the operands behind the definition's slots, one list
// of operands each. All attributes of `op` are then in `*attrs`, which must live as long as they
// are used. Error when one holds nothing, or values the attribute cannot have.
Status ReadVarAttrs(const std::vector<int>& var_attrs, Value* const* frame, BoundOp* op,
                    std::vector<AttrValue>* attrs);

}  // namespace heddle

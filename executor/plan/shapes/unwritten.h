// Outputs that an operator leaves unwritten (core/operands/unwritten.h).
#pragma once

#include <vector>

#include "core/op_context.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

// Output `i`, of which the shape function said nothing in `outs`, is one that its slot allows to be
// left unwritten, and no other operator writes its variable. The variable holds nothing, which its
// readers and a fetch find when they run. (Devices plan no such operators: their shapes are found
// while they run.)
bool StaysUnwritten(const PlanDraft& d, const Instruction& in, size_t i,
                    const std::vector<ShapeContext::OutMeta>& outs);

}  // namespace heddle

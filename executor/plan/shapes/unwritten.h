// Outputs that an operator leaves unwritten (core/operands/unwritten.h).
#pragma once

#include <vector>

#include "core/shape_context.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

// Whether output `i`, which the shape function has not set in `outs`, stays unwritten: its slot
// allows that, and no other operator writes its variable. The variable is then empty, which its
// readers and a fetch find at run time. (Device plans leave the shapes of such operators to the
// run.)
bool StaysUnwritten(const PlanDraft& d, const Instruction& in, size_t i,
                    const std::vector<ShapeContext::OutMeta>& outs);

}  // namespace heddle

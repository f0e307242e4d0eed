// Inserts casts of operands that an operator's kernels do not accept as they are.
//
// Real operands beside complex ones are cast (core/operands/promoted.h), as in Paddle. Any other
// mixture of dtypes is an error, as in Paddle: no kernel is silently replaced by one of another
// type.
#pragma once

#include <vector>

#include "executor/plan/plan_draft.h"

namespace heddle {

// Returns the instructions that cast operands of `in`, mostly none, and makes `in` read their
// results. Each result is a new slot, named after the variable that is cast. Precondition: the
// draft's frame has what is known of the operands' dtypes.
std::vector<Instruction> InsertCasts(PlanDraft& draft, Instruction& in);

}  // namespace heddle

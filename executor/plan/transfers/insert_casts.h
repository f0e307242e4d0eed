// Casts of operands that an operator's kernels do not take as they are.
//
// Real operands beside complex ones are cast (core/operands/promoted.h), as Paddle casts them. All
// other mixtures of data types are errors, here as there: no kernel is replaced by one of another
// type behind the program's back.
#pragma once

#include <vector>

#include "executor/plan/plan_draft.h"

namespace heddle {

// The instructions that make the operands of `in`, which reads their results from now on; mostly
// none. Each result is a new slot, named after the variable that is cast. Precondition: what is
// known of the operands' data types is in the draft's frame.
std::vector<Instruction> InsertCasts(PlanDraft& draft, Instruction& in);

}  // namespace heddle

// Copies into variables that a sub-block rewrites.
//
// A loop's body mostly computes the next value of a variable in a place of its own and copies it
// when the value before is not needed any more. Where nobody needs that value from the moment the
// next one is computed, the operator writes the variable itself, and the copy is gone.
#pragma once

#include "executor/plan/plan_draft.h"

namespace heddle {

// Precondition: the block is run by one instruction, and its views are resolved.
void JoinCopies(PlanDraft& draft, int block);

}  // namespace heddle

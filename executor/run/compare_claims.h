// Compares results whose shapes are found at run time with the claims that the passes relied on.
#pragma once

#include "executor/run/run_state.h"

namespace heddle {

// Checks that the instruction's results are as declared, for variables in Plan::claimed. Otherwise
// the run notes the variables (RunState::NoteOtherwise) and ends with this error; it is repeated
// with another plan if that is allowed. Preconditions: Instruction::claims; the kernel has run, and
// its results have not been read.
Status CompareClaims(const Instruction& in, RunState& run);

}  // namespace heddle

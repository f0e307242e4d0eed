// Compares what a run writes with what the passes went by, where nobody knew it before the run.
#pragma once

#include "executor/run/run_state.h"

namespace heddle {

// Checks that the instruction's results are as declared, for variables in Plan::claimed. If not,
// the run notes the variables (RunState::NoteOtherwise) and ends with this error; it is repeated
// with another plan where it may be. Precondition: Instruction::claims; the instruction's kernel
// has run, nobody has read the results.
Status CompareClaims(const Instruction& in, RunState& run);

}  // namespace heddle

// Compares what a run writes with what the passes went by, where nobody knew it before the run.
#pragma once

#include "executor/run/run_state.h"

namespace heddle {

// The instruction's results are what the plan's program declares, as far as its variables are
// claimed (Plan::claimed). If not, the run notes the variables (RunState::NoteOtherwise) and ends
// with this error; it is repeated with another plan where it may be. Precondition: there are
// claims; the instruction's kernel has run, nobody has read the results.
Status CompareClaims(const Instruction& in, RunState& run);

}  // namespace heddle

// Memory for the outputs of instructions that have none planned.
#pragma once

#include "executor/run/run_state.h"

namespace heddle {

bool IsOperand(const IdList& list, uint32_t slot);

// Memory for an output: what it has when that suffices and nobody else sees it.
void Provide(uint32_t slot, DType dtype, const Shape& shape, RunState& run);

// Operators without a shape function give those outputs memory that they write. (Those that run
// blocks may leave a variable as it is.)
void ForgetOutputs(const Instruction& in, RunState& run);

// Gives the outputs the dtypes and shapes that the shape function has told, and memory. `all`: it
// has told of everything that the operator writes. kInvalidArgument: a variable would not keep the
// shape that the plan relies on.
Status PlaceOutputs(const Instruction& in, const RunState::OutMetas& outs, bool all, RunState& run);

}  // namespace heddle

// Memory for outputs that have none planned.
#pragma once

#include "executor/run/run_state.h"

namespace heddle {

bool IsOperand(const IdList& list, uint32_t slot);

// Gives an output memory: its own, if that is large enough and not shared, else new memory.
void Provide(uint32_t slot, DType dtype, const Shape& shape, RunState& run);
// The same where the shape's size is at hand.
void Provide(uint32_t slot, DType dtype, const Shape& shape, size_t bytes, RunState& run);

// Empties the outputs of an operator without a shape function, which itself takes memory for those
// that it writes. (An operator that runs blocks may leave a variable unchanged.)
void ForgetOutputs(const Instruction& in, RunState& run);

// Gives the outputs the dtypes and shapes that the shape function has set, and memory. `all`: it
// has set everything that the operator writes. kInvalidArgument: a variable would not keep the
// shape that the plan relies on.
Status PlaceOutputs(const Instruction& in, const RunState::OutMetas& outs, bool all, RunState& run);

}  // namespace heddle

// Evaluates one operator on known values, without a run.
#pragma once

#include <vector>

#include "core/programs/ir.h"
#include "heddle/value.h"

namespace heddle {

// Evaluates `op`. `inputs`: one entry per operand, slot by slot; nullptr if the operand is absent.
// Returns the outputs, slot by slot; those that the program does not name are empty. Runs on the
// calling thread, except kernels of libraries that have their own threads. Errors: those of the
// shape function or the kernel; kResourceExhausted: the outputs take more than `max_bytes`;
// kUnimplemented: the operator needs more than its inputs (random numbers, blocks, a communicator).
Result<std::vector<Value>> Evaluate(const ir::Op& op, const std::vector<const Value*>& inputs,
                                    size_t max_bytes);

}  // namespace heddle

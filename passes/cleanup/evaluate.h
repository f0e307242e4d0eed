// Runs one operator on values that are known, away from any run.
#pragma once

#include <vector>

#include "core/programs/ir.h"
#include "heddle/value.h"

namespace heddle {

// `inputs`: per operand of `op`, in the order of its slots; null where there is none. Returns the
// outputs in the order of theirs (those the program names; others hold nothing). On the calling
// thread; kernels that use a library's threads use them. Errors: what the shape function or the
// kernel says; kResourceExhausted when the outputs take more than `max_bytes`; kUnimplemented for
// operators that need more than their inputs (random numbers, blocks, a communicator).
Result<std::vector<Value>> Evaluate(const ir::Op& op, const std::vector<const Value*>& inputs,
                                    size_t max_bytes);

}  // namespace heddle

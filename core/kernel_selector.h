// Which of an operator's kernels serves a call.
#pragma once

#include "core/op_context.h"

namespace heddle {

// The dtype that decides: of the input the definition names, else of the first one that has a
// dtype; kUnknown when none has.
DType KernelKey(const BoundOp& op, Value* const* frame);

// By the dtype of the input the definition names, else of the first one that has a dtype. Sets
// `fn`; an error when the operator has no kernel for that dtype.
Status SelectKernel(const BoundOp& op, Value* const* frame, KernelFn* fn);

// Before an operator's functions see a call: each operand is of a kind that its slot takes, and a
// required one holds something, or will when the kernel runs (at plan time).
Status CheckOperands(const BoundOp& op, Value* const* frame);

}  // namespace heddle

// Selects the kernel of an operator for a call.
#pragma once

#include "core/bound_op.h"
#include "core/op_def.h"
#include "heddle/value.h"

namespace heddle {

// The dtype that selects the kernel: of the input that the definition names, else of the first
// operand that has a dtype; kUnknown: none has.
DType KernelKey(const BoundOp& op, Value* const* frame);

// Sets `fn` to the kernel for KernelKey; an error if the operator has none for that dtype.
Status SelectKernel(const BoundOp& op, Value* const* frame, KernelFn* fn);

// To be called before an operator's functions: checks that each operand is of a kind that its slot
// accepts, and that a required one is not empty or, at plan time, will not be empty when the kernel
// runs.
Status CheckOperands(const BoundOp& op, Value* const* frame);

}  // namespace heddle

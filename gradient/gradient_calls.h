// Gradients that a file asks for, such as TensorFlow's SymbolicGradient.
//
// Ownership: the result shares the source of the program. Threads: any. Errors: as AppendBackward.
#pragma once

#include <memory>

#include "core/programs/ir.h"
#include "heddle/status.h"

namespace heddle::gradient {

// The program with the operators that compute program.source->GradientCalls(), each where the
// reader left zeros. Zeros stay where no loss depends on an argument.
Result<std::shared_ptr<ir::Program>> WithGradientCalls(const ir::Program& program);

}  // namespace heddle::gradient

// The kernels of operators from outside (heddle/operators/own_operator.h), chosen when a program is
// compiled.
#pragma once

#include <memory>

#include "core/programs/ir.h"
#include "heddle/operators/own_operator.h"
#include "heddle/status.h"

namespace heddle::internal {

// The program with a kernel for each operator from outside: that of `creator`, of the process's, or
// its own. The given program if nothing changes. Errors name the operator: it has no kernel, or a
// creator failed. Threads: any.
Result<std::shared_ptr<const ir::Program>> BindOwnKernels(
    const std::shared_ptr<const ir::Program>& program, const KernelCreator& creator);

}  // namespace heddle::internal

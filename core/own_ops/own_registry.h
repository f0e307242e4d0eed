// The operators that programs have added (heddle/operators/own_operator.h). Threads: any.
#pragma once

#include <string_view>
#include <vector>

#include "core/op_def.h"
#include "heddle/operators/own_operator.h"

namespace heddle {

// nullptr: no such operator was added.
const OpDef* FindOwnOp(std::string_view name);
// By a name in files, or by the operator's own.
const OpDef* FindOwnOpOfFile(std::string_view name);
std::vector<const OpDef*> AllOwnOps();
// The process's creator of kernels; nullptr: none.
KernelCreator DefaultKernelCreator();

}  // namespace heddle

// All operator definitions, by name. Each is made when it is first asked for; thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include "core/op_def.h"

namespace heddle {

// nullptr when heddle has no such operator.
const OpDef* FindOp(std::string_view type);
// Sorted by name.
std::vector<const OpDef*> AllOps();

// Adds an operator that is not in kernels/: one of an embedding program, or of a test. Allowed
// until the registry is first used, later calls and names that are there already end the process;
// `define` is called when the operator is first asked for. `name` must stay valid.
void RegisterOp(const char* name, void (*define)(OpDef&));

}  // namespace heddle

// All operator definitions, by name. Built at first use, frozen afterwards; thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include "core/op_def.h"

namespace heddle {

// nullptr when heddle has no such operator.
const OpDef* FindOp(std::string_view type);
// Sorted by name.
std::vector<const OpDef*> AllOps();

// Adds an operator that is not in kernels/: one of an embedding program, or of a test. Allowed until
// the registry is first used, which is when `define` is called; a later call, and a name that is
// there already, end the process. `name` must stay valid.
void RegisterOp(const char* name, void (*define)(OpDef&));

}  // namespace heddle

// All operator definitions, by name. Each is made at the first request. Thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include "core/op_def.h"

namespace heddle {

// nullptr: heddle has no such operator.
const OpDef* FindOp(std::string_view type);
// All definitions, sorted by name.
std::vector<const OpDef*> AllOps();

// Adds an operator from outside kernels/: of an embedding program, or of a test. Only allowed until
// the registry is first used; later calls, and names that exist already, end the process. `define`
// is called at the first request. `name` must stay valid.
void RegisterOp(const char* name, void (*define)(OpDef&));

}  // namespace heddle

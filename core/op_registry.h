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

}  // namespace heddle

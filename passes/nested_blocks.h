// Which blocks an operator runs.
#pragma once

#include <vector>

#include "core/ir.h"

namespace heddle::passes {

// Those that its attributes name, and those that run inside of them: each once, however often it is
// named.
std::vector<int> NestedBlocks(const ir::Program& program, const ir::Op& op);

}  // namespace heddle::passes

// The blocks that an operator runs.
#pragma once

#include <vector>

#include "core/ir.h"

namespace heddle::passes {

// The blocks that its attributes name and, recursively, the blocks that run inside them. Each block
// is listed once.
std::vector<int> NestedBlocks(const ir::Program& program, const ir::Op& op);

}  // namespace heddle::passes

// The blocks that an operator runs, and the blocks that name a variable.
#pragma once

#include <vector>

#include "core/programs/ir.h"

namespace heddle::passes {

// The blocks that its attributes name and, recursively, the blocks that run inside them. Each block
// is listed once.
std::vector<int> NestedBlocks(const ir::Program& program, const ir::Op& op);

// Block 0, and each block that an operator runs.
std::vector<int> BlocksThatRun(const ir::Program& program);

// The uses of each variable in all blocks. An operator that runs a block also names, in the block
// that it stands in, what it exchanges with that block (core/programs/sub_block_slots.h).
struct BlockUses {
  static constexpr int kNobody = -1, kSeveral = -2;
  std::vector<int> owner;     // the only block whose operators name it
  std::vector<bool> written;  // by some operator
};
BlockUses FindBlockUses(const ir::Program& program);

}  // namespace heddle::passes

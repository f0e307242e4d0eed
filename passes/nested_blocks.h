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
  struct Place {
    int block = -1, op = -1;
  };
  std::vector<Place> runner;  // per block: the last operator that runs it; {-1, -1}: none
};
BlockUses FindBlockUses(const ir::Program& program);
// Adds what the block names now, in time proportional to the block. What it named before, and other
// blocks do not, stays as it was: a variable may count as used by more blocks than it is.
void AddBlockUses(const ir::Program& program, int block, BlockUses* uses);
// The operator that runs the block; nullptr: none is known.
const ir::Op* RunnerOf(const ir::Program& program, const BlockUses& uses, int block);

}  // namespace heddle::passes

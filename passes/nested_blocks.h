// The blocks that an operator runs, and the blocks that name a variable.
#pragma once

#include <variant>
#include <vector>

#include "core/programs/ir.h"

namespace heddle::passes {

// Calls fn(block) for those that its attributes name: Op::SubBlocks() without a list.
template <typename Fn>
void ForEachSubBlock(const ir::Op& op, Fn&& fn) {
  if (!op.def->has(kControlFlow)) return;
  for (const AttrValue& a : op.attrs) {
    if (const auto* one = std::get_if<BlockRef>(&a)) {
      if (one->id >= 0) fn(one->id);
    } else if (const auto* many = std::get_if<std::vector<BlockRef>>(&a)) {
      for (const BlockRef& b : *many) fn(b.id);
    }
  }
}

// The blocks that its attributes name and, recursively, the blocks that run inside them. Each block
// is listed once.
std::vector<int> NestedBlocks(const ir::Program& program, const ir::Op& op);

// Block 0, and each block that an operator runs.
std::vector<int> BlocksThatRun(const ir::Program& program);

// What the operators of a block name, and those of the blocks that run inside it, each variable
// once, but for variables that one block alone names: all that a block outside has to do with.
struct BlockNames {
  std::vector<ir::VarId> reads, writes;
};

// The uses of each variable in all blocks. An operator that runs a block also names, in the block
// that it stands in, what it exchanges with that block (core/programs/sub_block_slots.h).
struct BlockUses {
  static constexpr int kNobody = -1, kSeveral = -2;
  std::vector<int> owner;     // the only block whose operators name it
  std::vector<bool> written;  // by some operator
  struct Place {
    int block = -1, op = -1;
  };
  std::vector<Place> runner;   // per block: the last operator that runs it; {-1, -1}: none
  bool shared_blocks = false;  // operators of several blocks run one
  // Per block; empty: not listed. They cost one look at the program, and no more than the names
  // that leave blocks, however deep these stand in each other.
  std::vector<BlockNames> names;
};
BlockUses FindBlockUses(const ir::Program& program, bool list_names = true);
// Adds what the block names now, in time proportional to the block. What it named before, and other
// blocks do not, stays as it was: a variable may count as used by more blocks than it is.
void AddBlockUses(const ir::Program& program, int block, BlockUses* uses);

// Calls fn(variable, written) for what the blocks name that the operator runs: from their lists,
// and where there are none, by a walk through all of them.
template <typename Fn>
void ForEachNestedName(const ir::Program& program, const BlockUses& uses, const ir::Op& op,
                       Fn&& fn) {
  if (!op.def->has(kControlFlow)) return;
  if (uses.names.size() != program.blocks.size()) {
    for (int sub : NestedBlocks(program, op))
      for (const ir::Op& inner : program.blocks[static_cast<size_t>(sub)].ops)
        for (const bool written : {false, true})
          for (const auto& slot : written ? inner.outputs : inner.inputs)
            for (ir::VarId v : slot)
              if (v != ir::kNoVar) fn(v, written);
    return;
  }
  ForEachSubBlock(op, [&](int sub) {
    const BlockNames& names = uses.names[static_cast<size_t>(sub)];
    for (ir::VarId v : names.reads) fn(v, false);
    for (ir::VarId v : names.writes) fn(v, true);
  });
}
// The operator that runs the block; nullptr: none is known.
const ir::Op* RunnerOf(const ir::Program& program, const BlockUses& uses, int block);

}  // namespace heddle::passes

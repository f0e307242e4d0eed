// The blocks that an operator runs, and the blocks that name a variable.
#pragma once

#include <variant>
#include <vector>

#include "core/programs/ir.h"

namespace heddle::passes {

// Calls fn(block) for the blocks that the operator's attributes name: like Op::SubBlocks(), without
// a list.
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

// The blocks that the operator's attributes name and, recursively, the blocks that run inside them,
// each once.
std::vector<int> NestedBlocks(const ir::Program& program, const ir::Op& op);

// Block 0, and each block that an operator runs.
std::vector<int> BlocksThatRun(const ir::Program& program);

// The variables that a block, or a block that runs inside it, names and that other blocks name as
// well, each once: all that matters to an outer block.
struct BlockNames {
  std::vector<ir::VarId> reads, writes;
};

// The uses of each variable in all blocks. An operator that runs a block counts, in its own block,
// as naming what it exchanges with that block (core/programs/sub_block_slots.h).
struct BlockUses {
  static constexpr int kNobody = -1, kSeveral = -2;
  std::vector<int> owner;     // the only block whose operators name it, kNobody or kSeveral
  std::vector<bool> written;  // by some operator
  struct Place {
    int block = -1, op = -1;
  };
  std::vector<Place> runner;   // per block: the last operator that runs it; {-1, -1}: none
  bool shared_blocks = false;  // whether operators of several blocks run one block
  // Per block; empty: not listed. Listing takes one visit of the program, and memory only for names
  // that several blocks share, however deep the blocks are nested.
  std::vector<BlockNames> names;
};
BlockUses FindBlockUses(const ir::Program& program, bool list_names = true);
// Adds what the block names now, in time proportional to the block. Nothing is removed, so a
// variable may count as used by more blocks than it is.
void AddBlockUses(const ir::Program& program, int block, BlockUses* uses);

// Calls fn(variable, written) for the names of the blocks that the operator runs: from the lists,
// or without lists by a walk through all these blocks.
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
// The operator that runs the block; nullptr: unknown.
const ir::Op* RunnerOf(const ir::Program& program, const BlockUses& uses, int block);

}  // namespace heddle::passes

#include "passes/nested_blocks.h"

#include <algorithm>
#include <unordered_set>

#include "core/interrupts.h"

namespace heddle::passes {

namespace {

// Adds the blocks that `op` runs and that are not there yet.
void AddBlocks(const ir::Op& op, std::unordered_set<int>* seen, std::vector<int>* found) {
  if (!op.def->has(kControlFlow)) return;
  for (int sub : op.SubBlocks())
    if (seen->insert(sub).second) found->push_back(sub);
}

// `found` has the first ones.
void AddNested(const ir::Program& program, std::unordered_set<int>* seen, std::vector<int>* found) {
  for (size_t i = 0; i < found->size(); ++i)
    for (const ir::Op& op : program.blocks[static_cast<size_t>((*found)[i])].ops)
      AddBlocks(op, seen, found);
}

}  // namespace

std::vector<int> NestedBlocks(const ir::Program& program, const ir::Op& op) {
  std::vector<int> found;
  if (!op.def->has(kControlFlow)) return found;
  std::unordered_set<int> seen;
  AddBlocks(op, &seen, &found);
  AddNested(program, &seen, &found);
  return found;
}

std::vector<int> BlocksThatRun(const ir::Program& program) {
  std::vector<int> found = {0};
  std::unordered_set<int> seen = {0};
  AddNested(program, &seen, &found);
  return found;
}

BlockUses FindBlockUses(const ir::Program& program) {
  BlockUses uses;
  for (const ir::Block& block : program.blocks) AddBlockUses(program, block.id, &uses);
  return uses;
}

void AddBlockUses(const ir::Program& program, int b, BlockUses* uses) {
  uses->owner.resize(program.vars.size(), BlockUses::kNobody);
  uses->written.resize(program.vars.size(), false);
  uses->runner.resize(program.blocks.size());
  const ir::Block& block = program.blocks[static_cast<size_t>(b)];
  const auto name = [&](ir::VarId v) {
    int& owner = uses->owner[v];
    owner = owner == BlockUses::kNobody || owner == block.id ? block.id : BlockUses::kSeveral;
  };
  for (size_t i = 0; i < block.ops.size(); ++i) {
    LookForInterrupt();
    const ir::Op& op = block.ops[i];
    if (op.def->has(kControlFlow))
      for (int sub : op.SubBlocks())
        uses->runner[static_cast<size_t>(sub)] = {block.id, static_cast<int>(i)};
    for (const auto& slot : op.inputs)
      for (ir::VarId v : slot)
        if (v != ir::kNoVar) name(v);
    for (const auto& slot : op.outputs) {
      for (ir::VarId v : slot) {
        if (v == ir::kNoVar) continue;
        name(v);
        uses->written[v] = true;
      }
    }
  }
}

const ir::Op* RunnerOf(const ir::Program& program, const BlockUses& uses, int block) {
  const auto b = static_cast<size_t>(block);
  if (b >= uses.runner.size() || uses.runner[b].block < 0) return nullptr;
  const auto& ops = program.blocks[static_cast<size_t>(uses.runner[b].block)].ops;
  const auto at = static_cast<size_t>(uses.runner[b].op);
  if (at >= ops.size()) return nullptr;
  const std::vector<int> subs = ops[at].SubBlocks();
  return std::find(subs.begin(), subs.end(), block) != subs.end() ? &ops[at] : nullptr;
}

}  // namespace heddle::passes

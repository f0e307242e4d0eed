#include "passes/nested_blocks.h"

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
  BlockUses uses{std::vector<int>(program.vars.size(), BlockUses::kNobody),
                 std::vector<bool>(program.vars.size(), false)};
  for (const ir::Block& block : program.blocks) {
    const auto name = [&](ir::VarId v) {
      int& owner = uses.owner[v];
      owner = owner == BlockUses::kNobody || owner == block.id ? block.id : BlockUses::kSeveral;
    };
    for (const ir::Op& op : block.ops) {
      LookForInterrupt();
      for (const auto& slot : op.inputs)
        for (ir::VarId v : slot)
          if (v != ir::kNoVar) name(v);
      for (const auto& slot : op.outputs) {
        for (ir::VarId v : slot) {
          if (v == ir::kNoVar) continue;
          name(v);
          uses.written[v] = true;
        }
      }
    }
  }
  return uses;
}

}  // namespace heddle::passes

#include "passes/cleanup/deep_reads.h"

#include <algorithm>

#include "core/programs/sub_block_slots.h"
#include "passes/nested_blocks.h"

namespace heddle::passes {

using ir::VarId;

namespace {

bool Names(const std::vector<VarId>& slot, VarId v) {
  return std::find(slot.begin(), slot.end(), v) != slot.end();
}

// An operator exchanges the variable with a block that it runs, or goes by its name.
bool IsHanded(const ir::Op& op, VarId v) {
  if (!op.def->has(kControlFlow)) return false;
  for (size_t s = 0; s < op.inputs.size(); ++s) {
    const bool handed = ir::ConditionSlot(*op.def) < 0 ||
                        (s < op.def->inputs().size() && ir::HandsValues(op.def->inputs()[s]));
    if (handed && Names(op.inputs[s], v)) return true;
  }
  return false;
}

}  // namespace

std::optional<std::vector<int>> DeepReaders(const ir::Program& program, const VersionView& view,
                                            VarId v, int at) {
  const ir::Var& var = program.vars[v];
  const auto reads = view.reads(v), writes = view.writes(v);
  if (var.block != view.block() || var.persistable || writes.size() != 1 || writes[0] != at ||
      reads.empty() || reads.front() <= at)
    return std::nullopt;
  const auto& ops = program.blocks[static_cast<size_t>(view.block())].ops;
  for (const int reader : reads) {
    const ir::Op& op = ops[static_cast<size_t>(reader)];
    if (!op.device.empty() || IsHanded(op, v)) return std::nullopt;
    if (!op.def->has(kControlFlow)) continue;
    for (const int inside : NestedBlocks(program, op))
      for (const ir::Op& inner : program.blocks[static_cast<size_t>(inside)].ops)
        if (IsHanded(inner, v)) return std::nullopt;
  }
  return std::vector<int>(reads.begin(), reads.end());
}

void ReplaceDeepReads(ir::Program* program, int block, const std::vector<int>& positions,
                      VarId from, VarId to) {
  const auto replace = [&](ir::Op* op) {
    for (auto& slot : op->inputs) std::replace(slot.begin(), slot.end(), from, to);
  };
  for (const int at : positions) {
    ir::Op& op = program->blocks[static_cast<size_t>(block)].ops[static_cast<size_t>(at)];
    replace(&op);
    if (!op.def->has(kControlFlow)) continue;
    for (const int inside : NestedBlocks(*program, op))
      for (ir::Op& inner : program->blocks[static_cast<size_t>(inside)].ops) replace(&inner);
  }
}

bool HasGradientBlocks(const ir::Program& program) {
  for (const ir::Block& block : program.blocks) {
    if (block.forward_block >= 0) return true;
    for (const ir::Op& op : block.ops)
      if (op.def->has(kControlFlow) && op.type().ends_with("_grad")) return true;
  }
  return false;
}

}  // namespace heddle::passes

#include "passes/cleanup/deep_reads.h"

#include <utility>

#include "core/programs/sub_block_slots.h"
#include "passes/nested_blocks.h"

namespace heddle::passes {

using ir::VarId;

namespace {

// Adds the operands through which the operator exchanges values with a block that it runs, and
// those that are found by their names.
void AddHanded(const ir::Op& op, std::unordered_set<VarId>* handed) {
  if (!op.def->has(kControlFlow)) return;
  for (size_t s = 0; s < op.inputs.size(); ++s)
    if (ir::ConditionSlot(*op.def) < 0 ||
        (s < op.def->inputs().size() && ir::HandsValues(op.def->inputs()[s])))
      handed->insert(op.inputs[s].begin(), op.inputs[s].end());
}

// Calls fn(operator) for the operator and for all operators of the blocks that it runs.
template <typename Fn>
void ForEachInside(ir::Program* program, ir::Op* op, Fn&& fn) {
  fn(op);
  if (!op->def->has(kControlFlow)) return;
  for (const int inside : NestedBlocks(*program, *op))
    for (ir::Op& inner : program->blocks[static_cast<size_t>(inside)].ops) fn(&inner);
}

}  // namespace

bool DeepReads::IsHanded(VarId v) {
  if (!std::exchange(listed_, true))
    for (ir::Op& op : p_.blocks[static_cast<size_t>(view_.block())].ops)
      ForEachInside(&p_, &op, [&](const ir::Op* inner) { AddHanded(*inner, &handed_); });
  return handed_.count(v) > 0;
}

std::optional<std::vector<int>> DeepReads::Readers(VarId v, int at) {
  const ir::Var& var = p_.vars[v];
  const auto reads = view_.reads(v), writes = view_.writes(v);
  if (var.block != view_.block() || var.persistable || writes.size() != 1 || writes[0] != at ||
      reads.empty() || reads.front() <= at || IsHanded(v))
    return std::nullopt;
  const auto& ops = p_.blocks[static_cast<size_t>(view_.block())].ops;
  for (const int reader : reads)
    if (!ops[static_cast<size_t>(reader)].device.empty()) return std::nullopt;
  return std::vector<int>(reads.begin(), reads.end());
}

void DeepReads::Replace(const std::vector<int>& positions, VarId from, VarId to) {
  replaced_[from] = ReplacementOf(to);
  positions_.insert(positions.begin(), positions.end());
}

VarId DeepReads::ReplacementOf(VarId v) const {
  const auto it = replaced_.find(v);
  return it == replaced_.end() ? v : it->second;
}

bool DeepReads::Apply() {
  if (replaced_.empty()) return false;
  auto& ops = p_.blocks[static_cast<size_t>(view_.block())].ops;
  for (const int at : positions_)
    ForEachInside(&p_, &ops[static_cast<size_t>(at)], [&](ir::Op* op) {
      for (auto& slot : op->inputs)
        for (VarId& v : slot) v = ReplacementOf(v);
    });
  replaced_.clear();
  positions_.clear();
  return true;
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

#include "passes/graph_view.h"

#include "core/interrupts.h"
#include "passes/nested_blocks.h"

namespace heddle::passes {

GraphView::GraphView(const ir::Program& program, const PassContext& context)
    : program_(program),
      block_(context.block),
      uses_(context.uses),
      numbers_(program, context.block),
      writers_(0),
      readers_(0) {
  if (!numbers_.complete()) Number();
  const size_t count = numbers_.size();
  writers_.Clear(count);
  readers_.Clear(count);
  shared_.assign(count, false);
  initial_.assign(count, false);
  for (const ir::Port& f : program.feeds)
    if (const uint32_t n = f.var == ir::kNoVar ? VarNumbers::kNone : numbers_.Find(f.var);
        n != VarNumbers::kNone)
      initial_[n] = true;
  if (numbers_.complete())
    for (ir::VarId v = 0; v < program.vars.size(); ++v)
      if (program.vars[v].persistable) initial_[v] = true;
  const auto& ops = program.blocks[static_cast<size_t>(block_)].ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    LookForInterrupt();
    const int at = static_cast<int>(i);
    Touch(ops[i], at);
    ForEachNestedName(program, uses_, ops[i], [&](ir::VarId v, bool written) {
      (written ? writers_ : readers_).Add(numbers_.Find(v), at);
      Meet(v, true);
    });
  }
  writers_.Close();
  readers_.Close();
  // Such a variable is fed, although no feed operator says so.
  for (uint32_t n = 0; n < count; ++n)
    if (!readers_[n].empty() && !writers_[n].empty() && readers_[n][0] <= writers_[n][0])
      initial_[n] = true;
}

// Numbers the variables that the block and its inner blocks name.
void GraphView::Number() {
  const auto add = [&](const ir::Op& op) {
    for (const auto* slots : {&op.inputs, &op.outputs})
      for (const auto& slot : *slots)
        for (ir::VarId v : slot)
          if (v != ir::kNoVar) numbers_.Add(v);
  };
  for (const ir::Op& op : program_.blocks[static_cast<size_t>(block_)].ops) {
    add(op);
    ForEachNestedName(program_, uses_, op, [&](ir::VarId v, bool) { numbers_.Add(v); });
  }
}

void GraphView::Touch(const ir::Op& op, int at) {
  for (const auto& slot : op.inputs) {
    for (ir::VarId v : slot) {
      if (v == ir::kNoVar) continue;
      readers_.Add(numbers_.Find(v), at);
      Meet(v, false);
    }
  }
  for (const auto& slot : op.outputs) {
    for (ir::VarId v : slot) {
      if (v == ir::kNoVar) continue;
      writers_.Add(numbers_.Find(v), at);
      Meet(v, false);
    }
  }
}

void GraphView::Meet(ir::VarId v, bool nested) {
  const uint32_t n = numbers_.Find(v);
  if (nested) shared_[n] = true;
  if (!numbers_.complete() && program_.vars[v].persistable) initial_[n] = true;
  // Variables that the pass has added since then belong to the block alone.
  if (block_ > 0 && v < uses_.owner.size() && uses_.owner[v] != block_) initial_[n] = true;
}

bool GraphView::SingleWriter(ir::VarId v, bool joins_edges) const {
  const ir::Var& var = program_.vars[v];
  const uint32_t n = numbers_.Find(v);
  return n != VarNumbers::kNone && (block_ > 0 || var.block == 0) &&
         var.kind == ir::VarKind::kTensor && !initial_[n] && !shared_[n] &&
         writers_[n].size() == 1 && (joins_edges || !HasControlEdges(writers_[n][0]));
}

bool GraphView::HasControlEdges(int at) const {
  const auto& ops = program_.blocks[static_cast<size_t>(block_)].ops;
  return static_cast<size_t>(at) < ops.size() && ops[static_cast<size_t>(at)].has_control_edges();
}

int GraphView::OnlyReader(ir::VarId v, const PassContext& context) const {
  if (!SingleWriter(v) || readers(v).size() != 1 || context.fetched.count(v) > 0) return -1;
  const int reader = readers(v)[0];
  return reader > writers(v)[0] && !HasControlEdges(reader) ? reader : -1;
}

bool GraphView::ReadTheSame(std::span<const int> positions, int last) const {
  const auto& ops = program_.blocks[static_cast<size_t>(block_)].ops;
  for (const int at : positions)
    for (const auto& slot : ops[static_cast<size_t>(at)].inputs)
      for (ir::VarId v : slot)
        if (v != ir::kNoVar && !Unchanged(v, at + 1, last)) return false;
  return true;
}

}  // namespace heddle::passes

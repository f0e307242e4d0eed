#include "passes/graph_view.h"

#include "core/interrupts.h"
#include "passes/nested_blocks.h"

namespace heddle::passes {

GraphView::GraphView(const ir::Program& program, const PassContext& context)
    : program_(program),
      block_(context.block),
      uses_(context.uses),
      writers_(program.vars.size()),
      readers_(program.vars.size()),
      shared_(program.vars.size(), false),
      initial_(program.vars.size(), false) {
  for (const ir::Port& f : program.feeds)
    if (f.var != ir::kNoVar) initial_[f.var] = true;
  for (ir::VarId v = 0; v < program.vars.size(); ++v)
    if (program.vars[v].persistable) initial_[v] = true;
  const auto& ops = program.blocks[static_cast<size_t>(block_)].ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    LookForInterrupt();
    Touch(ops[i], static_cast<int>(i), false);
    for (int sub : NestedBlocks(program, ops[i]))
      for (const ir::Op& inner : program.blocks[sub].ops) Touch(inner, static_cast<int>(i), true);
  }
  writers_.Close();
  readers_.Close();
  // Fed, though no feed operator says so.
  for (ir::VarId v = 0; v < program.vars.size(); ++v)
    if (!readers_[v].empty() && !writers_[v].empty() && readers_[v][0] <= writers_[v][0])
      initial_[v] = true;
}

void GraphView::Touch(const ir::Op& op, int at, bool nested) {
  for (const auto& slot : op.inputs) {
    for (ir::VarId v : slot) {
      if (v == ir::kNoVar) continue;
      readers_.Add(v, at);
      Meet(v, nested);
    }
  }
  for (const auto& slot : op.outputs) {
    for (ir::VarId v : slot) {
      if (v == ir::kNoVar) continue;
      writers_.Add(v, at);
      Meet(v, nested);
    }
  }
}

void GraphView::Meet(ir::VarId v, bool nested) {
  if (nested) shared_[v] = true;
  // Variables that the pass has made since are the block's own.
  if (block_ > 0 && v < uses_.owner.size() && uses_.owner[v] != block_) initial_[v] = true;
}

bool GraphView::SingleWriter(ir::VarId v, bool joins_edges) const {
  const ir::Var& var = program_.vars[v];
  return (block_ > 0 || var.block == 0) && var.kind == ir::VarKind::kTensor && !initial_[v] &&
         !shared_[v] && writers_[v].size() == 1 &&
         (joins_edges || !HasControlEdges(writers_[v][0]));
}

bool GraphView::HasControlEdges(int at) const {
  const auto& ops = program_.blocks[static_cast<size_t>(block_)].ops;
  return static_cast<size_t>(at) < ops.size() && ops[static_cast<size_t>(at)].has_control_edges();
}

int GraphView::OnlyReader(ir::VarId v, const PassContext& context) const {
  if (!SingleWriter(v) || readers_[v].size() != 1 || context.fetched.count(v) > 0) return -1;
  const int reader = readers_[v][0];
  return reader > writers_[v][0] && !HasControlEdges(reader) ? reader : -1;
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

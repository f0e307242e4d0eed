// Operators whose results nobody can see.
#include "passes/nested_blocks.h"
#include "passes/pass.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

class DeadOps {
 public:
  DeadOps(ir::Program& program, const PassContext& context)
      : p_(program), view_(program, context.fetched), live_(program.vars.size(), false) {}

  bool Run() {
    bool changed = false;
    for (ir::Block& block : p_.blocks) changed = Sweep(&block) || changed;
    return changed;
  }

 private:
  // From the last operator to the first: what is read further on is live.
  bool Sweep(ir::Block* block) {
    view_.Enter(block->id);
    for (VarId v : marked_) live_[v] = false;
    marked_.clear();
    std::vector<bool> gone(block->ops.size(), false);
    bool any = false;
    for (size_t i = block->ops.size(); i-- > 0;) {
      const ir::Op& op = block->ops[i];
      if (!Needed(op)) {
        gone[i] = any = true;
        continue;
      }
      if (!op.def->has(kControlFlow))
        for (const auto& slot : op.outputs)
          for (VarId v : slot)
            if (v != kNoVar) live_[v] = false;
      MarkRead(op);
      for (int sub : NestedBlocks(p_, op))
        for (const ir::Op& inner : p_.blocks[sub].ops) MarkRead(inner);
    }
    if (any) EraseOps(block, gone);
    return any;
  }

  bool Needed(const ir::Op& op) const {
    if (!IsPure(op)) return true;
    bool writes = false;
    for (const auto& slot : op.outputs) {
      for (VarId v : slot) {
        if (v == kNoVar) continue;
        writes = true;
        if (live_[v] || !view_.Private(v)) return true;
      }
    }
    return !writes;
  }

  void MarkRead(const ir::Op& op) {
    for (const auto& slot : op.inputs) {
      for (VarId v : slot) {
        if (v == kNoVar) continue;
        live_[v] = true;
        marked_.push_back(v);
      }
    }
  }

  ir::Program& p_;
  VersionView view_;
  std::vector<bool> live_;
  std::vector<VarId> marked_;  // as live in this block
};

Result<bool> Run(ir::Program& program, PassContext& context) {
  return DeadOps(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(dead_ops) {
  pass.doc = "removes operators whose results nobody reads, fetches or finds in a variable later";
  pass.before = "b = relu(a); c = tanh(a); fetch b";
  pass.after = "b = relu(a); fetch b";
  pass.refuses =
      "operators with side effects, that draw random numbers, communicate, read data or run "
      "blocks; "
      "writes to parameters and to variables that several blocks name";
  pass.level = 1;
  pass.repeat = true;
  pass.run = Run;
}

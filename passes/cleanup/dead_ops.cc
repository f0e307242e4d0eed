// Erases operators whose results nobody can observe.
#include "passes/cleanup/block_sweep.h"
#include "passes/cleanup/unwritten_reads.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

class DeadOps : public BlockSweep {
 public:
  DeadOps(ir::Program& program, PassContext& context)
      : BlockSweep(program, context),
        unwritten_(program, context),
        live_(program.vars.size(), false) {}

 private:
  // Goes from the last operator to the first: what a later operator reads is live.
  void Sweep() override {
    for (VarId v : marked_) live_[v] = false;
    marked_.clear();
    for (size_t i = block_->ops.size(); i-- > 0;) {
      const ir::Op& op = block_->ops[i];
      if (!Needed(op) && !unwritten_.MayFail(block_->id, i)) {
        Erase(i);
        continue;
      }
      if (!op.def->has(kControlFlow))
        for (const auto& slot : op.outputs)
          for (VarId v : slot)
            if (v != kNoVar) live_[v] = false;
      MarkRead(op);
      view_.ForEachNested(op, [&](VarId v, bool written) {
        if (!written) MarkRead(v);
      });
    }
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
    for (const auto& slot : op.inputs)
      for (VarId v : slot)
        if (v != kNoVar) MarkRead(v);
  }
  void MarkRead(VarId v) {
    live_[v] = true;
    marked_.push_back(v);
  }

  const UnwrittenReads unwritten_;
  std::vector<bool> live_;
  std::vector<VarId> marked_;  // as live in this block
};

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(dead_ops) {
  pass.doc = "removes operators whose results are never read, fetched or kept in a variable";
  pass.before = "b = relu(a); c = tanh(a); fetch b";
  pass.after = "b = relu(a); fetch b";
  pass.refuses =
      "operators with side effects, that draw random numbers, communicate, read data, run "
      "blocks or read what may not have been written; writes to parameters and to variables that "
      "several blocks name";
  pass.level = 1;
  pass.repeat = true;
  pass.run = RunSweep<DeadOps>;
}

#include "passes/variable_uses.h"

#include "core/interrupts.h"
#include "core/programs/sub_block_slots.h"

namespace heddle {
namespace {

class Finder {
 public:
  explicit Finder(const ir::Program& p)
      : p_(p),
        uses_(p.vars.size()),
        home_(p.vars.size(), -1),
        runs_(p.blocks.size(), 0),
        open_(p.blocks.size(), false) {}

  std::vector<VariableUse> Run(std::vector<bool>* run_once) {
    Walk(0);
    run_once->assign(p_.blocks.size(), false);
    MarkOnce(0, run_once);
    return std::move(uses_);
  }

 private:
  void Walk(int block) {
    open_[block] = true;
    for (const ir::Op& op : p_.blocks[block].ops) {
      LookForInterrupt();
      const bool runs_blocks = op.def->has(kControlFlow);
      for (size_t s = 0; s < op.inputs.size(); ++s)
        for (ir::VarId v : op.inputs[s]) Read(v, runs_blocks && IsHanded(op.def->inputs(), s));
      if (runs_blocks)
        for (int sub : op.SubBlocks())
          if (runs_[sub]++ == 0) Walk(sub);
      for (const auto& slot : op.outputs)
        for (ir::VarId v : slot) Write(v, block, runs_blocks);
    }
    open_[block] = false;
  }
  static bool IsHanded(const std::vector<SlotDef>& slots, size_t s) {
    return s < slots.size() && ir::IsSubBlockSlot(slots[s]);
  }

  void Read(ir::VarId v, bool handed) {
    if (v == ir::kNoVar) return;
    if (handed || home_[v] < 0 || !open_[home_[v]]) uses_[v].elsewhere = true;
  }
  void Write(ir::VarId v, int block, bool runs_blocks) {
    if (v == ir::kNoVar) return;
    if (uses_[v].writes++ == 0) home_[v] = block;
    if (runs_blocks) uses_[v].elsewhere = true;
  }

  void MarkOnce(int block, std::vector<bool>* run_once) const {
    for (const ir::Op& op : p_.blocks[block].ops) {
      LookForInterrupt();
      if (!op.def->has(kControlFlow)) continue;
      for (int sub : op.SubBlocks()) {
        if (runs_[sub] != 1) continue;
        (*run_once)[sub] = true;
        MarkOnce(sub, run_once);
      }
    }
  }

  const ir::Program& p_;
  std::vector<VariableUse> uses_;
  std::vector<int> home_;   // per variable: the block of its first writer
  std::vector<int> runs_;   // per block: the number of operators that run it
  std::vector<bool> open_;  // per block: whether the walk is inside it
};

}  // namespace

std::vector<VariableUse> FindVariableUses(const ir::Program& program, std::vector<bool>* run_once) {
  return Finder(program).Run(run_once);
}

}  // namespace heddle

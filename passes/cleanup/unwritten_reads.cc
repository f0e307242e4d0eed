#include "passes/cleanup/unwritten_reads.h"

#include <utility>

#include "core/interrupts.h"
#include "core/operands/unwritten.h"
#include "core/programs/sub_block_slots.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

// Visits the operators in the order of execution, and the body of a loop until the set of variables
// that are written at the beginning of a turn no longer changes.
class WrittenWalk {
 public:
  WrittenWalk(const ir::Program& program, PassContext& context,
              std::vector<std::vector<bool>>* marks)
      : p_(program),
        marks_(*marks),
        visits_(program.blocks.size()),
        given_up_(program.blocks.size()) {
    written_.assign(p_.vars.size(), true);  // what no operator writes is fed, or missed by the plan
    for (const ir::Block& block : p_.blocks)
      for (const ir::Op& op : block.ops)
        for (const auto& slot : op.outputs)
          for (VarId v : slot)
            if (v != kNoVar)
              written_[v] = p_.vars[v].input || p_.vars[v].kind != ir::VarKind::kTensor;
    for (VarId v : context.fed) written_[v] = true;
    for (VarId v = 0; v < p_.vars.size(); ++v)
      if (p_.vars[v].persistable && p_.vars[v].kind == ir::VarKind::kTensor)
        written_[v] = context.fed.count(v) > 0 || context.Parameter(p_, v, false, false) != nullptr;
  }

  void Run() { Visit(0); }

 private:
  // Nested loops and blocks with many runners multiply the visits. After so many, all operators of
  // a block are assumed to be able to fail.
  static constexpr int kMostVisits = 64;

  void Visit(int b) {
    const auto block = static_cast<size_t>(b);
    const auto& ops = p_.blocks[block].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      LookForInterrupt();
      if (ops[i].def->has(kControlFlow)) {
        VisitBlocks(ops[i]);
        continue;
      }
      if (MayFail(ops[i])) Mark(block, i);
      NoteWritten(ops[i]);
    }
  }
  void Mark(size_t block, size_t at) {
    marks_.resize(p_.blocks.size());
    marks_[block].resize(p_.blocks[block].ops.size(), false);
    marks_[block][at] = true;
  }

  // Visits the operator's blocks. A block that need not run makes no variable certainly written.
  void VisitBlocks(const ir::Op& op) {
    for (size_t s = 0; s < op.outputs.size(); ++s)
      if (ir::IsSubBlockSlot(op.def->outputs()[s])) NoteSlot(op.outputs[s]);
    bool changed = true;
    while (changed && ir::RunsAgain(*op.def)) changed = RunPerhaps(op);
    if (!ir::NeedNotRun(*op.def)) {
      for (int sub : op.SubBlocks()) VisitOrGiveUp(sub);
      NoteWritten(op);
    } else if (changed) {
      RunPerhaps(op);
    }
  }
  // Visits blocks that may not run. Afterwards those variables are certainly written that were so
  // before, and that the blocks leave so. Returns whether this set has changed.
  bool RunPerhaps(const ir::Op& op) {
    const size_t begin = changes_.size();
    for (int sub : op.SubBlocks()) VisitOrGiveUp(sub);
    std::vector<VarId> unwritten;
    for (size_t k = begin; k < changes_.size(); ++k)
      if (!written_[changes_[k]]) unwritten.push_back(changes_[k]);
    for (; changes_.size() > begin; changes_.pop_back())
      written_[changes_.back()] = !written_[changes_.back()];
    bool changed = false;
    for (VarId v : unwritten) {
      changed = changed || written_[v];
      SetWritten(v, false);
    }
    return changed;
  }
  void VisitOrGiveUp(int block) {
    if (visits_[static_cast<size_t>(block)]++ < kMostVisits)
      Visit(block);
    else
      GiveUp(block);
  }
  // From here on, what the block writes never counts as certainly written.
  void GiveUp(int block) {
    const auto b = static_cast<size_t>(block);
    if (given_up_[b]) return;
    given_up_[b] = true;
    visits_[b] = kMostVisits;
    never_.resize(p_.vars.size());
    for (size_t i = 0; i < p_.blocks[b].ops.size(); ++i) {
      LookForInterrupt();
      const ir::Op& op = p_.blocks[b].ops[i];
      if (!op.def->has(kControlFlow)) Mark(b, i);
      for (const auto& slot : op.outputs) {
        for (VarId v : slot)
          if (v != kNoVar) never_[v] = true;
        NoteSlot(slot, false);
      }
      for (int sub : op.SubBlocks()) GiveUp(sub);
    }
  }

  bool MayFail(const ir::Op& op) const {
    if (op.type() == "read_from_array") return true;
    const auto& slots = op.def->inputs();
    const bool selects = ir::SelectsOperand(*op.def);
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      if (s < slots.size() && (slots[s].flags & kOptional) && !selects) continue;
      for (VarId v : op.inputs[s])
        if (v != kNoVar && !written_[v]) return true;
    }
    return false;
  }

  void NoteWritten(const ir::Op& op) {
    // An operator that accepts an empty operand may leave its output empty.
    bool whole = true;
    for (const auto& slot : op.inputs)
      for (VarId v : slot) whole = whole && (v == kNoVar || written_[v]);
    const bool selects = ir::SelectsOutput(*op.def);
    for (size_t s = 0; s < op.outputs.size(); ++s)
      NoteSlot(op.outputs[s], whole && !selects && !(op.def->outputs()[s].flags & kMayBeUnwritten));
  }
  // An output that is left unwritten hides the variable's earlier value.
  void NoteSlot(const std::vector<VarId>& vars, bool written = true) {
    for (VarId v : vars)
      if (v != kNoVar) SetWritten(v, written);
  }
  void SetWritten(VarId v, bool written) {
    if (!never_.empty() && never_[v]) written = false;
    if (written_[v] == written) return;
    written_[v] = written;
    changes_.push_back(v);
  }

  const ir::Program& p_;
  std::vector<std::vector<bool>>& marks_;
  std::vector<int> visits_;     // per block
  std::vector<bool> given_up_;  // per block
  std::vector<bool> written_;   // per variable: certainly written, at the walk's position
  std::vector<bool> never_;     // per variable: never certainly written, since a block was given up
  std::vector<VarId> changes_;  // variables whose entry of written_ was flipped, in order
};

}  // namespace

UnwrittenReads::UnwrittenReads(const ir::Program& program, PassContext& context) {
  WrittenWalk(program, context, &marks_).Run();
}

}  // namespace heddle::passes

#include "passes/cleanup/unwritten_reads.h"

#include <utility>

#include "core/operands/unwritten.h"
#include "core/programs/sub_block_slots.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

// Goes through the operators in the order in which they run.
class WrittenWalk {
 public:
  WrittenWalk(const ir::Program& program, PassContext& context,
              std::vector<std::vector<bool>>* marks)
      : p_(program), marks_(*marks), visited_(program.blocks.size(), false) {
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
  void Visit(int b) {
    const auto block = static_cast<size_t>(b);
    visited_[block] = true;
    const auto& ops = p_.blocks[block].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].def->has(kControlFlow)) {
        VisitBlocks(ops[i]);
        continue;
      }
      if (MayFail(ops[i])) {
        marks_.resize(p_.blocks.size());
        marks_[block].resize(ops.size(), false);
        marks_[block][i] = true;
      }
      NoteWritten(ops[i]);
    }
  }

  // What a block writes that need not run may not be there behind it.
  void VisitBlocks(const ir::Op& op) {
    const bool certain =
        !op.type().starts_with("conditional_block") && !op.type().starts_with("while");
    for (size_t s = 0; s < op.outputs.size(); ++s)
      if (ir::IsSubBlockSlot(op.def->outputs()[s])) NoteSlot(op.outputs[s]);
    const std::vector<bool> before = written_;
    for (int sub : op.SubBlocks())
      if (!visited_[static_cast<size_t>(sub)]) Visit(sub);
    if (!certain)
      written_ = before;
    else
      NoteWritten(op);
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
    // Operators that take nothing for an operand may make nothing of it.
    bool whole = true;
    for (const auto& slot : op.inputs)
      for (VarId v : slot) whole = whole && (v == kNoVar || written_[v]);
    const bool selects = ir::SelectsOutput(*op.def);
    for (size_t s = 0; s < op.outputs.size(); ++s)
      NoteSlot(op.outputs[s], whole && !selects && !(op.def->outputs()[s].flags & kMayBeUnwritten));
  }
  // An output that is left unwritten hides what its variable held before.
  void NoteSlot(const std::vector<VarId>& vars, bool written = true) {
    for (VarId v : vars)
      if (v != kNoVar) written_[v] = written;
  }

  const ir::Program& p_;
  std::vector<std::vector<bool>>& marks_;
  std::vector<bool> visited_, written_;
};

}  // namespace

UnwrittenReads::UnwrittenReads(const ir::Program& program, PassContext& context) {
  WrittenWalk(program, context, &marks_).Run();
}

}  // namespace heddle::passes

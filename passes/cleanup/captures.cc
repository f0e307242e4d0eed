// What the turns of a loop pass on unchanged is read where it comes from.
//
// Readers of files give a loop a variable for each value that it carries, and a copy into it at the
// end of the body. Where the body hands the value on as it came, the copies go: a variable that no
// turn changes is a value of the block outside. Copies that only blocks inside read go likewise,
// so that what a loop reads is a constant where what was copied is one.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/programs/sub_block_slots.h"
#include "passes/cleanup/copies.h"
#include "passes/cleanup/deep_reads.h"
#include "passes/cleanup/turn_values.h"
#include "passes/nested_blocks.h"
#include "passes/pass.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

bool IsTensorOrArray(const ir::Var& var) {
  return (var.kind == ir::VarKind::kTensor || var.kind == ir::VarKind::kArray) && !var.persistable;
}

class CaptureMaker {
 public:
  CaptureMaker(ir::Program& program, PassContext& context) : p_(program), context_(context) {}

  bool Run() {
    if (p_.blocks.size() < 2 || HasGradientBlocks(p_)) return false;
    runs_.assign(p_.blocks.size(), 0);
    for (const ir::Block& block : p_.blocks)
      for (const ir::Op& op : block.ops)
        for (int sub : op.SubBlocks()) ++runs_[static_cast<size_t>(sub)];
    bool changed = false;
    // Inner loops first: what they pass on, the outer one's turn may pass on as well.
    for (size_t b = p_.blocks.size(); b-- > 0;)
      for (size_t at = 0; at < p_.blocks[b].ops.size(); ++at)
        if (const int body = BodyOf(p_.blocks[b].ops[at]); body >= 0)
          changed = Release(&p_.blocks[b].ops[at], body) || changed;
    for (const int block : BlocksThatRun(p_)) changed = ReadSources(block) || changed;
    if (changed) {
      EraseUnread();
      FixLists(0);
    }
    return changed;
  }

 private:
  // That of a loop which alone runs it; -1 for other operators.
  int BodyOf(const ir::Op& op) const {
    if (!ir::RunsAgain(*op.def) || ir::ConditionSlot(*op.def) < 0 || !op.var_attrs.empty())
      return -1;
    const std::vector<int> bodies = op.SubBlocks();
    return bodies.size() == 1 && runs_[static_cast<size_t>(bodies[0])] == 1 ? bodies[0] : -1;
  }

  bool Within(int block, int outer) const {
    while (block > 0 && block != outer) block = p_.blocks[static_cast<size_t>(block)].parent;
    return block == outer;
  }

  // The copies go that give a variable the value with which the turn began, and what the body reads
  // from copies of variables that no turn changes, it reads from these.
  bool Release(ir::Op* loop, int body) {
    TurnValues turn(p_, body);
    turn.Run();
    const VarId condition = OnlyIn(*loop, "Condition");
    std::vector<bool> changes(p_.vars.size());
    std::vector<TurnValues::Place> gone;
    for (VarId v : turn.written()) {
      const ir::Var& var = p_.vars[v];
      if (turn.IsPassedOn(v) && v != condition && IsTensorOrArray(var) &&
          !Within(var.block, body)) {
        const auto& writes = turn.WritesOf(v);
        gone.insert(gone.end(), writes.begin(), writes.end());
      } else {
        changes[v] = true;
      }
    }
    bool changed = !gone.empty();
    TurnValues again(p_, body);
    const size_t count = p_.vars.size();
    again.on_read = [&](VarId& read, TurnValues::Number value) {
      if (value >= count || value == read || changes[value]) return;
      const ir::Var &from = p_.vars[value], &to = p_.vars[read];
      if (from.kind != to.kind || from.dtype != to.dtype || Within(from.block, body)) return;
      read = value;
      changed = true;
    };
    again.Run();
    if (!changed) return false;
    EraseAt(gone);
    FixLists(body);
    if (HasLists(*loop)) FixListsOf(loop);
    return true;
  }

  void EraseAt(const std::vector<TurnValues::Place>& places) {
    std::set<int> blocks;
    for (const auto& place : places) blocks.insert(place.block);
    for (const int b : blocks) {
      ir::Block& block = p_.blocks[static_cast<size_t>(b)];
      std::vector<bool> gone(block.ops.size());
      for (const auto& place : places)
        if (place.block == b) gone[static_cast<size_t>(place.at)] = true;
      EraseOps(&block, gone);
    }
  }

  // Operators that run a block list the outer variables that it reads and writes.
  void FixLists(int block) {
    for (ir::Block& b : p_.blocks)
      if (Within(b.id, block))
        for (ir::Op& op : b.ops)
          if (HasLists(op)) FixListsOf(&op);
  }
  void FixListsOf(ir::Op* op) {
    std::vector<bool> written(p_.vars.size()), read(p_.vars.size());
    std::vector<VarId> reads;
    const int body = op->SubBlocks()[0];
    for (const int nested : NestedBlocks(p_, *op))
      for (const ir::Op& inner : p_.blocks[static_cast<size_t>(nested)].ops) {
        const bool lists = HasLists(inner);
        for (size_t s = 0; s < inner.inputs.size(); ++s)
          for (VarId v : inner.inputs[s])
            if (v != kNoVar && !read[v] && !(lists && IsList(inner, s))) {
              read[v] = true;
              if (!Within(p_.vars[v].block, body)) reads.push_back(v);
            }
        for (const auto& slot : inner.outputs)
          for (VarId v : slot)
            if (v != kNoVar && !lists) written[v] = true;
      }
    std::erase_if(op->outputs[static_cast<size_t>(op->def->FindOutput("Out"))],
                  [&](VarId v) { return v != kNoVar && !written[v]; });
    auto& list = op->inputs[static_cast<size_t>(ListSlot(*op))];
    std::erase_if(list, [&](VarId v) { return v != kNoVar && !read[v] && !written[v]; });
    for (VarId v : list)
      if (v != kNoVar) read[v] = false;
    for (VarId v : reads)
      if (read[v]) list.push_back(v);
  }
  // They tell of the block, and nothing else goes by them.
  static bool HasLists(const ir::Op& op) {
    if (ir::ConditionSlot(*op.def) < 0 || op.SubBlocks().size() != 1) return false;
    const int scalar = op.def->FindAttr("is_scalar_condition");
    return scalar < 0 || std::get<bool>(op.attrs[static_cast<size_t>(scalar)]);
  }
  static int ListSlot(const ir::Op& op) {
    return std::max(op.def->FindInput("X"), op.def->FindInput("Input"));
  }
  static bool IsList(const ir::Op& op, size_t slot) {
    return static_cast<int>(slot) == ListSlot(op) ||
           static_cast<int>(slot) == op.def->FindInput("sub_block:arrays");
  }

  // Readers of a copy that stand in blocks inside read what was copied.
  bool ReadSources(int block) {
    VersionView view(p_, context_.fetched);
    view.Enter(block);
    DeepReads deep(&p_, view);
    const size_t count = p_.blocks[static_cast<size_t>(block)].ops.size();
    for (size_t at = 0; at < count; ++at) {
      const ir::Op& op = p_.blocks[static_cast<size_t>(block)].ops[at];
      const VarId copied = CopiedBy(p_, op);
      if (copied == kNoVar || !op.device.empty()) continue;
      const VarId from = deep.ReplacementOf(copied);
      const VarId copy = OnlyOut(op, "Out");
      if (!IsTensorOrArray(p_.vars[copy]) || p_.vars[copy].dtype != p_.vars[from].dtype ||
          context_.fed.count(copy) > 0)
        continue;
      const auto position = static_cast<int>(at);
      const auto readers = deep.Readers(copy, position);
      if (!readers || !view.Same(from, position, readers->back() + 1)) continue;
      const auto runs_blocks = [&](int reader) {
        return p_.blocks[static_cast<size_t>(block)].ops[static_cast<size_t>(reader)].def->has(
            kControlFlow);
      };
      if (std::none_of(readers->begin(), readers->end(), runs_blocks)) continue;
      deep.Replace(*readers, copy, from);
    }
    return deep.Apply();
  }

  // Marks what the operator reads. One that writes an array changes the array that is there.
  void MarkRead(const ir::Op& op, std::vector<bool>* read) const {
    const bool lists = HasLists(op);
    for (size_t s = 0; s < op.inputs.size(); ++s)
      for (VarId v : op.inputs[s])
        if (v != kNoVar && !(lists && IsList(op, s))) (*read)[v] = true;
    if (lists || CopiedBy(p_, op) != kNoVar) return;
    for (const auto& slot : op.outputs)
      for (VarId v : slot)
        if (v != kNoVar && p_.vars[v].kind == ir::VarKind::kArray) (*read)[v] = true;
  }

  // Copies that nobody reads any more.
  void EraseUnread() {
    for (bool again = true; std::exchange(again, false);) {
      std::vector<bool> read(p_.vars.size());
      for (const ir::Block& block : p_.blocks)
        for (const ir::Op& op : block.ops) MarkRead(op, &read);
      for (ir::Block& block : p_.blocks) {
        std::vector<bool> gone(block.ops.size());
        for (size_t at = 0; at < block.ops.size(); ++at) {
          if (CopiedBy(p_, block.ops[at]) == kNoVar) continue;
          const VarId copy = OnlyOut(block.ops[at], "Out");
          gone[at] =
              !read[copy] && IsTensorOrArray(p_.vars[copy]) && context_.fetched.count(copy) == 0;
        }
        if (std::find(gone.begin(), gone.end(), true) == gone.end()) continue;
        EraseOps(&block, gone);
        again = true;
      }
    }
  }

  ir::Program& p_;
  PassContext& context_;
  std::vector<int> runs_;  // per block: operators that run it
};

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(captures) {
  pass.doc = "what a loop's turns pass on unchanged is read where it comes from";
  pass.before = "c = assign(w); while: { b = matmul_v2(a, c); d = assign(c); a = b; c = d }";
  pass.after = "while: { b = matmul_v2(a, w); a = b }";
  pass.refuses =
      "variables that a turn changes and changes back, other than by copies; values that go round "
      "among several variables; the loop's condition; parameters that the loop writes; programs "
      "with gradients";
  pass.level = 1;
  pass.repeat = true;
  pass.run = [](ir::Program& program, PassContext& context) -> Result<bool> {
    return CaptureMaker(program, context).Run();
  };
}

// Values that a loop passes on unchanged from turn to turn are read where they come from.
//
// Readers of files give a loop a variable for each value that it carries, and append a copy into it
// to the body. If the body leaves the value unchanged, the copies are erased: a variable that no
// turn changes is a value of the outer block. Copies that only inner blocks read are erased too, so
// that a loop reads a constant itself and not a copy of it.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/programs/sub_block_slots.h"
#include "passes/cleanup/copies.h"
#include "passes/cleanup/counted_loop.h"
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
    const std::vector<int> runs = CountRunners(p_);
    turn_.emplace(p_);
    CountWrites();
    bool changed = false;
    // Inner loops first: what they pass on unchanged, the outer loop may pass on unchanged as well.
    for (size_t b = p_.blocks.size(); b-- > 0;)
      for (size_t at = 0; at < p_.blocks[b].ops.size(); ++at)
        if (const int body = LoopBody(p_.blocks[b].ops[at], runs); body >= 0)
          changed = Release(&p_.blocks[b].ops[at], body) || changed;
    VersionView view(p_, context_.fetched);
    const std::vector<int> blocks = BlocksThatRun(p_);
    for (const int block : blocks) changed = ReadSources(block, &view) || changed;
    if (!changed) return false;
    EraseUnread();
    for (const int block : blocks)
      for (ir::Op& op : p_.blocks[static_cast<size_t>(block)].ops)
        if (HasLists(op)) FixListsOf(&op);
    return true;
  }

 private:
  bool Within(int block, int outer) const {
    while (block > 0 && block != outer) block = p_.blocks[static_cast<size_t>(block)].parent;
    return block == outer;
  }

  // Erases copies that give a variable the value it had at the beginning of the turn; and where the
  // body reads a copy of a variable that no turn changes, lets it read that variable.
  bool Release(ir::Op* loop, int body) {
    turn_->Run(body);
    const VarId condition = OnlyIn(*loop, "Condition");
    std::unordered_set<VarId> changes;
    std::vector<TurnValues::Place> gone;
    for (VarId v : turn_->written()) {
      const ir::Var& var = p_.vars[v];
      if (turn_->IsPassedOn(v) && v != condition && IsTensorOrArray(var) &&
          !Within(var.block, body) &&
          (context_.fetched.count(v) == 0 || writes_[v] > turn_->WritesOf(v).size())) {
        const auto& writes = turn_->WritesOf(v);
        writes_[v] -= writes.size();
        gone.insert(gone.end(), writes.begin(), writes.end());
      } else {
        changes.insert(v);
      }
    }
    bool changed = !gone.empty();
    const size_t count = p_.vars.size();
    turn_->Run(body, [&](VarId& read, TurnValues::Number value) {
      if (value >= count || value == read || changes.count(value) > 0) return;
      const ir::Var &from = p_.vars[value], &to = p_.vars[read];
      if (from.kind != to.kind || from.dtype != to.dtype || Within(from.block, body)) return;
      read = value;
      changed = true;
    });
    if (!changed) return false;
    EraseAt(gone);
    for (const int nested : NestedBlocks(p_, *loop))
      for (ir::Op& op : p_.blocks[static_cast<size_t>(nested)].ops)
        if (HasLists(op)) FixListsOf(&op);
    if (HasLists(*loop)) FixListsOf(loop);
    return true;
  }

  // Counts the operators that write each variable; operators that only list it for their blocks do
  // not count.
  void CountWrites() {
    writes_.assign(p_.vars.size(), 0);
    for (const ir::Block& block : p_.blocks)
      for (const ir::Op& op : block.ops) {
        LookForInterrupt();
        if (HasLists(op)) continue;
        for (const auto& slot : op.outputs)
          for (VarId v : slot)
            if (v != kNoVar) ++writes_[v];
      }
    for (const size_t count : writes_) only_listed_.push_back(count == 0);
  }

  void EraseAt(const std::vector<TurnValues::Place>& places) {
    std::unordered_map<int, std::vector<bool>> gone;  // by block
    for (const auto& [block, at] : places) {
      std::vector<bool>& of_block = gone[block];
      of_block.resize(p_.blocks[static_cast<size_t>(block)].ops.size());
      of_block[static_cast<size_t>(at)] = true;
    }
    for (const auto& [block, ops] : gone) EraseOps(&p_.blocks[static_cast<size_t>(block)], ops);
  }

  // Corrects the operator's lists of the outer variables that its blocks read and write.
  void FixListsOf(ir::Op* op) {
    std::unordered_set<VarId> written, read;
    std::vector<VarId> reads;
    const int body = op->SubBlocks()[0];
    for (const int nested : NestedBlocks(p_, *op))
      for (const ir::Op& inner : p_.blocks[static_cast<size_t>(nested)].ops) {
        LookForInterrupt();
        const bool lists = HasLists(inner);
        for (size_t s = 0; s < inner.inputs.size(); ++s)
          for (VarId v : inner.inputs[s])
            if (v != kNoVar && !(lists && IsList(inner, s)) && read.insert(v).second) {
              if (!Within(p_.vars[v].block, body)) reads.push_back(v);
            }
        for (const auto& slot : inner.outputs)
          for (VarId v : slot)
            if (v != kNoVar && !lists) written.insert(v);
      }
    // What no operator writes stays listed: somebody may read it, who then gets an error in the
    // run.
    std::erase_if(op->outputs[static_cast<size_t>(op->def->FindOutput("Out"))],
                  [&](VarId v) { return v != kNoVar && !written.contains(v) && !only_listed_[v]; });
    auto& list = op->inputs[static_cast<size_t>(ListSlot(*op))];
    std::erase_if(
        list, [&](VarId v) { return v != kNoVar && !read.contains(v) && !written.contains(v); });
    for (VarId v : list) read.erase(v);
    for (VarId v : reads)
      if (read.contains(v)) list.push_back(v);
  }
  // Whether the operator lists the outer variables that its block reads and writes, and these lists
  // have no other use.
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

  // Lets readers of a copy read what was copied, if some of them are in inner blocks.
  bool ReadSources(int block, VersionView* of_blocks) {
    VersionView& view = *of_blocks;
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

  // Counts the operator's reads. Writing an element of an array counts as reading the array.
  void CountReads(const ir::Op& op, std::vector<int>* reads) const {
    const bool lists = HasLists(op);
    for (size_t s = 0; s < op.inputs.size(); ++s)
      for (VarId v : op.inputs[s])
        if (v != kNoVar && !(lists && IsList(op, s))) ++(*reads)[v];
    if (lists || CopiedBy(p_, op) != kNoVar) return;
    for (const auto& slot : op.outputs)
      for (VarId v : slot)
        if (v != kNoVar && p_.vars[v].kind == ir::VarKind::kArray) ++(*reads)[v];
  }

  void NoteWritten(const ir::Op& op, std::vector<bool>* written) const {
    if (HasLists(op)) return;
    for (const auto& slot : op.outputs)
      for (VarId v : slot)
        if (v != kNoVar) (*written)[v] = true;
  }

  // Erases the copies into variables that nobody reads, and then copies that only these read.
  void EraseUnread() {
    std::vector<int> reads(p_.vars.size());
    // By variable: an operator other than a copy writes it, so that its copies stay.
    std::vector<bool> kept(p_.vars.size());
    std::unordered_map<VarId, std::vector<TurnValues::Place>> copies;  // by what they write
    for (const ir::Block& block : p_.blocks)
      for (size_t at = 0; at < block.ops.size(); ++at) {
        LookForInterrupt();
        const ir::Op& op = block.ops[at];
        CountReads(op, &reads);
        if (CopiedBy(p_, op) == kNoVar) {
          NoteWritten(op, &kept);
          continue;
        }
        const VarId copy = OnlyOut(op, "Out");
        if (IsTensorOrArray(p_.vars[copy]) && context_.fetched.count(copy) == 0)
          copies[copy].push_back({block.id, static_cast<int>(at)});
      }
    std::vector<VarId> unread;
    for (const auto& [copy, places] : copies)
      if (reads[copy] == 0 && !kept[copy]) unread.push_back(copy);
    std::vector<TurnValues::Place> gone;
    while (!unread.empty()) {
      const VarId copy = unread.back();
      unread.pop_back();
      for (const auto& place : copies[copy]) {
        gone.push_back(place);
        const VarId from = CopiedBy(
            p_, p_.blocks[static_cast<size_t>(place.block)].ops[static_cast<size_t>(place.at)]);
        if (--reads[from] == 0 && !kept[from] && copies.count(from) > 0) unread.push_back(from);
      }
    }
    EraseAt(gone);
  }

  ir::Program& p_;
  PassContext& context_;
  std::optional<TurnValues> turn_;
  std::vector<size_t> writes_;  // per variable: operators that write it
  // Per variable: before the pass, at most the lists of operators that run blocks say it is
  // written.
  std::vector<bool> only_listed_;
};

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(captures) {
  pass.doc = "values that a loop's turns pass on unchanged are read where they come from";
  pass.before = "c = assign(w); while: { b = matmul_v2(a, c); d = assign(c); a = b; c = d }";
  pass.after = "while: { b = matmul_v2(a, w); a = b }";
  pass.refuses =
      "variables that a turn changes and changes back, other than by copies; values that go round "
      "among several variables; the loop's condition; parameters that the loop writes; programs "
      "with gradients";
  pass.level = 1;
  pass.repeat = true;
  pass.seeks = [](const OpDef& def) { return def.has(kControlFlow); };
  pass.run = [](ir::Program& program, PassContext& context) -> Result<bool> {
    return CaptureMaker(program, context).Run();
  };
}

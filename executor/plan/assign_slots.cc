// Assigns slots: the storage that each operand of each operator means.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/programs/sub_block_slots.h"
#include "executor/plan/calls/plan_calls.h"
#include "executor/plan/plan_draft.h"
#include "executor/plan/slot_index.h"
#include "passes/variable_uses.h"

namespace heddle {
namespace {

using ir::kNoVar;
using ir::VarId;

class SlotAssigner {
 public:
  explicit SlotAssigner(PlanDraft& draft)
      : d_(draft), p_(draft.program), plan_(*draft.plan), current_(p_.vars.size(), kNoSlot) {}

  Status Run() {
    FindShared();
    if (d_.CompilesBodies()) KeepVersions();
    plan_.slots.reserve(written_count_ + d_.request.feeds.size());
    plan_.blocks.resize(p_.blocks.size());
    HEDDLE_RETURN_IF_ERROR(AddFeeds());
    HEDDLE_RETURN_IF_ERROR(AddBlock(0));
    HEDDLE_RETURN_IF_ERROR(AddFetches());
    DropUnread();
    d_.handed.assign(plan_.slots.size(), false);
    for (uint32_t s : handed_) d_.handed[s] = true;
    return Status::Ok();
  }

 private:
  // Finds the shared variables: those that several blocks touch, that outlive a run, or that are no
  // tensors. All others are versioned.
  void FindShared() {
    shared_.assign(p_.vars.size(), false);
    written_.assign(p_.vars.size(), false);
    defined_.assign(p_.vars.size(), false);
    std::vector<int> block_of(p_.vars.size(), -1);
    for (VarId v = 0; v < p_.vars.size(); ++v)
      shared_[v] = p_.vars[v].persistable || p_.vars[v].kind != ir::VarKind::kTensor;
    for (const FeedSignature& f : d_.request.feeds)
      if (const VarId v = p_.Find(0, f.name); v != kNoVar) block_of[v] = 0;
    for (const auto& block : p_.blocks) {
      for (const auto& op : block.ops) {
        LookForInterrupt();
        const bool runs_blocks = op.def->has(kControlFlow);
        const auto touch = [&](VarId v, bool write) {
          if (v == kNoVar) return;
          if (block_of[v] >= 0 && block_of[v] != block.id) shared_[v] = true;
          // The variable keeps its value if the operator's blocks do not write it.
          if (write && runs_blocks && block_of[v] >= 0) shared_[v] = true;
          // Read before any write, in a block that may run again: its value is carried from run to
          // run of the block.
          if (!write && !written_[v] && block.id != 0) shared_[v] = true;
          block_of[v] = block.id;
          if (write) written_[v] = true;
          written_count_ += write;
        };
        for (const auto& slot : op.inputs)
          for (VarId v : slot) touch(v, false);
        for (const auto& slot : op.outputs)
          for (VarId v : slot) touch(v, true);
      }
    }
  }

  // A variable that is written once, before all its readers, in a block that runs whenever they do,
  // needs no fixed slot: it is versioned, even if several blocks touch it.
  void KeepVersions() {
    const std::vector<VariableUse> uses = FindVariableUses(p_, &d_.run_once);
    std::vector<bool> fed(p_.vars.size(), false);
    for (const FeedSignature& f : d_.request.feeds)
      if (const VarId v = p_.Find(0, f.name); v != kNoVar) fed[v] = true;
    crosses_.assign(p_.vars.size(), false);
    for (VarId v = 0; v < p_.vars.size(); ++v) {
      if (!shared_[v] || p_.vars[v].persistable || p_.vars[v].kind != ir::VarKind::kTensor ||
          uses[v].writes != 1 || uses[v].elsewhere || fed[v])
        continue;
      shared_[v] = false;
      crosses_[v] = true;
    }
  }

  uint32_t NewSlot(VarId v, Storage storage, bool versioned) {
    Slot s;
    s.var = v;
    s.storage = storage;
    s.versioned = versioned;
    s.crosses = v != kNoVar && !crosses_.empty() && crosses_[v];
    s.home = block_;
    plan_.slots.push_back(s);
    return static_cast<uint32_t>(plan_.slots.size() - 1);
  }

  // The fixed slot of a shared variable.
  uint32_t SharedSlot(VarId v) {
    if (current_[v] == kNoSlot) {
      // A persistable variable is in the scope, also in a sub-block.
      const bool in_scope = p_.vars[v].persistable;
      current_[v] = NewSlot(v, in_scope ? Storage::kScope : Storage::kPool, false);
      if (in_scope) plan_.scope_slots.push_back(current_[v]);
    }
    return current_[v];
  }

  Status AddFeeds() {
    for (const FeedSignature& f : d_.request.feeds) {
      const VarId v = p_.Find(0, f.name);
      if (v == kNoVar) return InvalidArgument("the program has no variable '", f.name, "' to feed");
      if (current_[v] != kNoSlot) return InvalidArgument("'", f.name, "' is fed twice");
      PlanFeed feed;
      feed.name = f.name;
      // A shared variable that the program also writes must not change the caller's memory.
      feed.copied = shared_[v] && written_[v];
      feed.slot = NewSlot(v, Storage::kFeed, !feed.copied && f.kind == Value::Kind::kTensor);
      current_[v] = feed.slot;
      defined_[v] = true;
      plan_.feeds.push_back(feed);
    }
    return Status::Ok();
  }

  uint32_t Read(VarId v) {
    if (v == kNoVar) return kNoSlot;
    if (shared_[v]) return SharedSlot(v);
    return current_[v];  // kNoSlot: it has not been written; the operand counts as empty
  }

  uint32_t Write(VarId v) {
    if (v == kNoVar) return kNoSlot;
    defined_[v] = true;
    if (shared_[v]) return SharedSlot(v);
    current_[v] = NewSlot(v, Storage::kPool, true);
    return current_[v];
  }

  Status CheckRead(int block, const ir::Op& op, size_t slot, VarId v, uint32_t s) {
    const auto& slots = op.def->inputs();
    const bool attribute = slot >= slots.size();
    if (v == kNoVar || (!attribute && (slots[slot].flags & kOptional))) return Status::Ok();
    const ir::Var& var = p_.vars[v];
    const bool absent = s == kNoSlot || (plan_.slots[s].storage == Storage::kPool && !defined_[v]);
    if (!absent || op.def->has(kControlFlow) || var.kind != ir::VarKind::kTensor)
      return Status::Ok();
    const std::string& reader =
        attribute ? op.def->attrs()[op.var_attrs[slot - slots.size()]].name : slots[slot].name;
    return InvalidArgument(attribute ? "attribute '" : "input '", reader, "' reads variable '",
                           var.name,
                           "', which is neither fed nor a parameter nor written by an earlier "
                           "operator")
        .At(p_.Locate(block, op));
  }

  Status AddBlock(int b) {
    const auto& ops = p_.blocks[b].ops;
    const int outer = std::exchange(block_, b);
    plan_.blocks[b].instructions.reserve(ops.size());
    if (b > 0 && d_.CompilesBodies())
      plan_.blocks[b].workspace = NewSlot(kNoVar, Storage::kNone, false);
    for (size_t i = 0; i < ops.size(); ++i) {
      LookForInterrupt();
      const ir::Op& op = ops[i];
      // A sub-block's accesses come before its operator's own writes, in program order.
      Instruction& in = plan_.blocks[b].instructions.emplace_back();
      in.ir_block = b;
      in.ir_op = static_cast<int>(i);
      in.op.def = op.def;
      in.op.attrs = op.attrs.data();
      in.var_attrs.Assign(op.var_attrs);
      HEDDLE_RETURN_IF_ERROR(BindInputs(b, op, &in));
      if (op.def->has(kControlFlow)) DefineGiven(op);
      for (int sub : op.SubBlocks())
        if (plan_.blocks[sub].instructions.empty()) HEDDLE_RETURN_IF_ERROR(AddBlock(sub));
      BindOutputs(op, &in);
      if (op.def->has(kControlFlow)) NoteHanded(in);
    }
    block_ = outer;
    return Status::Ok();
  }

  void NoteHanded(const Instruction& in) {
    const auto note = [&](const std::vector<SlotDef>& defs, const IdList& begin,
                          const IdList& list) {
      for (size_t d = 0; d < defs.size(); ++d)
        if (ir::HandsValues(defs[d]))
          for (uint32_t k = begin[d]; k < begin[d + 1]; ++k)
            if (list[k] != kNoSlot) handed_.push_back(list[k]);
    };
    note(in.op.def->inputs(), in.op.in_begin, in.op.in);
    note(in.op.def->outputs(), in.op.out_begin, in.op.out);
  }

  // Marks the variables that an operator writes for its blocks to read
  // (core/programs/sub_block_slots.h).
  void DefineGiven(const ir::Op& op) {
    for (size_t s = 0; s < op.outputs.size(); ++s)
      if (ir::IsSubBlockSlot(op.def->outputs()[s]))
        for (VarId v : op.outputs[s])
          if (v != kNoVar) defined_[v] = true;
  }

  Status BindInputs(int b, const ir::Op& op, Instruction* in) {
    in->op.in_begin.reserve(op.inputs.size() + 1);
    in->op.in.reserve(Operands(op.inputs));
    in->op.in_begin.push_back(0);
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      for (VarId v : op.inputs[s]) {
        const uint32_t slot = Read(v);
        HEDDLE_RETURN_IF_ERROR(CheckRead(b, op, s, v, slot));
        in->op.in.push_back(slot);
      }
      in->op.in_begin.push_back(static_cast<uint32_t>(in->op.in.size()));
    }
    return Status::Ok();
  }

  void BindOutputs(const ir::Op& op, Instruction* in) {
    in->op.out_begin.reserve(op.outputs.size() + 1);
    in->op.out.reserve(Operands(op.outputs));
    in->op.out_begin.push_back(0);
    const bool rewrites = !op.def->has(kControlFlow);
    OperandIndex operands(in->op.in);
    for (size_t s = 0; s < op.outputs.size(); ++s) {
      for (VarId v : op.outputs[s]) {
        uint32_t slot = Write(v);
        // Only a shared variable is written to the slot from which it is read.
        const bool kept = rewrites && slot != kNoSlot && shared_[v];
        if (const uint32_t at = kept ? operands.Find(slot) : ~0u; at < in->op.in.size()) {
          const uint32_t hidden = NewSlot(v, Storage::kPool, true);
          // Not in place if the operand is named twice: it would be read while it is overwritten.
          const bool inplace =
              operands.Count(slot) == 1 && MayWorkInPlace(*in, at, static_cast<int>(s));
          in->rewrites.push_back({hidden, slot, inplace});
          slot = hidden;
        }
        in->op.out.push_back(slot);
      }
      in->op.out_begin.push_back(static_cast<uint32_t>(in->op.out.size()));
    }
  }

  static size_t Operands(const std::vector<std::vector<VarId>>& slots) {
    size_t n = 0;
    for (const auto& slot : slots) n += slot.size();
    return n;
  }

  static bool MayWorkInPlace(const Instruction& in, uint32_t in_pos, int out_slot) {
    for (const auto& pair : in.op.def->inplace())
      if (pair.out == out_slot && in.op.in_begin[pair.in] <= in_pos &&
          in_pos < in.op.in_begin[pair.in + 1])
        return true;
    return false;
  }

  Status AddFetches() {
    for (VarId v : d_.request.fetches) {
      PlanFetch fetch;
      fetch.name = p_.vars[v].name;
      fetch.slot = shared_[v] ? SharedSlot(v) : current_[v];
      if (fetch.slot == kNoSlot ||
          (plan_.slots[fetch.slot].storage == Storage::kPool && !written_[v]))
        return InvalidArgument("cannot fetch '", fetch.name,
                               "': it is neither fed nor a parameter, and no operator writes it");
      plan_.fetches.push_back(fetch);
    }
    return Status::Ok();
  }

  // Optional outputs that are not read (masks, saved statistics, XShape) are not computed.
  void DropUnread() {
    std::vector<bool> read(plan_.slots.size(), false);
    for (const PlanFetch& f : plan_.fetches) read[f.slot] = true;
    for (const BlockPlan& block : plan_.blocks) {
      for (const Instruction& in : block.instructions) {
        LookForInterrupt();
        for (uint32_t s : in.op.in)
          if (s != kNoSlot) read[s] = true;
        for (const auto& r : in.rewrites) read[r.hidden] = true;
      }
    }
    for (BlockPlan& block : plan_.blocks) {
      for (Instruction& in : block.instructions) {
        LookForInterrupt();
        for (size_t o = 0; o < in.op.def->outputs().size(); ++o) {
          // Kernels iterate over lists by their length, so elements of a list cannot be left out.
          const unsigned flags = in.op.def->outputs()[o].flags;
          if (!(flags & kOptional) || (flags & kList)) continue;
          for (uint32_t k = in.op.out_begin[o]; k < in.op.out_begin[o + 1]; ++k) {
            uint32_t& s = in.op.out[k];
            if (s == kNoSlot || read[s] || !plan_.slots[s].versioned) continue;
            plan_.slots[s].storage = Storage::kNone;
            s = kNoSlot;
          }
        }
      }
    }
  }

  PlanDraft& d_;
  const ir::Program& p_;
  Plan& plan_;
  std::vector<uint32_t> current_;  // per variable: its present slot
  std::vector<bool> shared_, written_;
  // Per variable: versioned, though several blocks touch it; empty: none.
  std::vector<bool> crosses_;
  std::vector<uint32_t> handed_;
  int block_ = 0;              // the block whose operators are being visited
  size_t written_count_ = 0;   // operands written, about the number of slots
  std::vector<bool> defined_;  // written so far, in the order in which blocks run
};

}  // namespace

Status AssignSlots(PlanDraft& draft) {
  draft.plan->program = draft.request.program;
  draft.plan->scope = draft.request.scope;
  draft.plan->root_scope = draft.request.root_scope;
  draft.plan->packs = draft.request.packs;
  draft.plan->lean = draft.request.lean;
  draft.plan->forced = draft.request.forced;
  draft.plan->claimed = draft.request.claimed;
  HEDDLE_RETURN_IF_ERROR(SlotAssigner(draft).Run());
  FindFunctions(draft);
  return Status::Ok();
}

}  // namespace heddle

// Copies into variables that a sub-block rewrites: see JoinCopies.
#include <algorithm>

#include "core/interrupts.h"
#include "executor/plan/arena_sharing.h"
#include "executor/plan/block_access.h"
#include "executor/plan/plan_draft.h"

namespace heddle {
namespace {

class Joiner {
 public:
  Joiner(PlanDraft& d, int block)
      : d_(d), plan_(*d.plan), block_(block), ins_(plan_.blocks[block].instructions) {}

  void Run() {
    std::vector<bool> gone(ins_.size(), false);
    for (size_t i = 0; i < ins_.size(); ++i) {
      if (ins_[i].op.def->views().empty() || ins_[i].mode != Instruction::Mode::kStatic) continue;
      uint32_t from, to;
      if (!IsCopy(ins_[i], &from, &to) || d_.HasControlEdges(ins_[i])) continue;
      if (accesses_.empty()) ListAccesses();
      const size_t made = MadeAt(from, i);
      if (made == ins_.size() || !MayJoin(made, i, from, to)) continue;
      // A variable gets its place from an instruction of known shapes that writes it. Without one
      // left, as where nobody needs the variable, it would have none.
      if (placers_[to] < 2) continue;
      --placers_[to];
      Join(from, to);
      gone[i] = true;
    }
    size_t kept = 0;
    for (size_t i = 0; i < ins_.size(); ++i) {
      if (gone[i]) continue;
      if (kept != i) ins_[kept] = std::move(ins_[i]);
      ++kept;
    }
    ins_.erase(ins_.begin() + static_cast<std::ptrdiff_t>(kept), ins_.end());
  }

 private:
  struct Access {
    std::vector<uint32_t> reads, writes;
  };

  const Slot& At(uint32_t s) const { return plan_.slots[s]; }

  // A copy of a value of this block into a variable that has its place.
  bool IsCopy(const Instruction& in, uint32_t* from, uint32_t* to) const {
    const OpDef::SlotPair pair = in.op.def->views()[0];
    const uint32_t i = in.op.in_begin[pair.in], o = in.op.out_begin[pair.out];
    if (in.op.in.size() != 1 || i != 0 || o >= in.op.out_begin[pair.out + 1]) return false;
    for (uint32_t k = 0; k < in.op.out.size(); ++k)
      if (k != o && in.op.out[k] != kNoSlot) return false;
    *from = in.op.in[i];
    *to = in.op.out[o];
    if (*from == kNoSlot || *to == kNoSlot || !d_.IsFixed(*to)) return false;
    const Slot &f = At(*from), &t = At(*to);
    return f.versioned && f.is_static && f.storage == Storage::kPool && f.home == block_ &&
           !d_.fetched[*from] && f.dtype == t.dtype && f.bytes() == t.bytes();
  }

  void CountPlacers() {
    using Mode = Instruction::Mode;
    placers_.assign(plan_.slots.size(), 0);
    for (const BlockPlan& block : plan_.blocks)
      for (const Instruction& in : block.instructions) {
        LookForInterrupt();
        if (in.mode != Mode::kStatic && in.mode != Mode::kReplace) continue;
        for (uint32_t s : in.op.out)
          if (s != kNoSlot) ++placers_[s];
      }
  }

  void ListAccesses() {
    CountPlacers();
    BlockAccess blocks(plan_);
    accesses_.resize(ins_.size());
    for (size_t i = 0; i < ins_.size(); ++i) {
      const Instruction& in = ins_[i];
      Access& a = accesses_[i];
      a.reads.assign(in.op.in.begin(), in.op.in.end());
      a.writes.assign(in.op.out.begin(), in.op.out.end());
      for (const auto& r : in.rewrites) a.writes.push_back(r.real);
      for (int sub : BlocksOf(plan_, in)) {
        const BlockAccess::Slots& inner = blocks.Of(sub);
        a.reads.insert(a.reads.end(), inner.reads.begin(), inner.reads.end());
        a.writes.insert(a.writes.end(), inner.writes.begin(), inner.writes.end());
      }
    }
  }
  bool Names(const std::vector<uint32_t>& slots, uint32_t root) const {
    return std::any_of(slots.begin(), slots.end(),
                       [&](uint32_t s) { return s != kNoSlot && plan_.RootOf(s) == root; });
  }

  // The instruction before `end` that writes the value; ins_.size() when there is none to join.
  size_t MadeAt(uint32_t value, size_t end) const {
    for (size_t i = end; i-- > 0;) {
      const auto& outs = ins_[i].op.out;
      if (std::find(outs.begin(), outs.end(), value) == outs.end()) continue;
      return ins_[i].mode == Instruction::Mode::kStatic ? i : ins_.size();
    }
    return ins_.size();
  }

  bool MayJoin(size_t made, size_t copied, uint32_t value, uint32_t variable) const {
    if (Names(accesses_[made].writes, variable)) return false;
    if (Names(accesses_[made].reads, variable) && !WorksInPlace(ins_[made], value, variable))
      return false;
    for (size_t i = made + 1; i < copied; ++i)
      if (Names(accesses_[i].reads, variable) || Names(accesses_[i].writes, variable)) return false;
    bool rewritten = false;  // then the value would be gone
    for (size_t i = copied + 1; i < ins_.size(); ++i) {
      if (rewritten && Names(accesses_[i].reads, value)) return false;
      rewritten = rewritten || Names(accesses_[i].writes, variable);
    }
    return true;
  }

  bool WorksInPlace(const Instruction& in, uint32_t value, uint32_t variable) const {
    int named = 0;
    for (uint32_t s : in.op.in) named += s != kNoSlot && plan_.RootOf(s) == variable;
    if (named != 1) return false;
    for (const auto& pair : in.op.def->inplace()) {
      if (in.op.out_begin[pair.out] == in.op.out_begin[pair.out + 1] ||
          in.op.out[in.op.out_begin[pair.out]] != value)
        continue;
      for (uint32_t k : ArenaSharing::TakeableInputs(in, pair))
        if (plan_.RootOf(in.op.in[k]) == variable && At(in.op.in[k]).bytes() == At(value).bytes())
          return true;
    }
    return false;
  }

  void Join(uint32_t value, uint32_t variable) {
    for (Slot& s : plan_.slots)
      if (s.base == value) s.base = variable;
    plan_.slots[value].storage = Storage::kView;
    plan_.slots[value].base = variable;
  }

  PlanDraft& d_;
  Plan& plan_;
  const int block_;
  std::vector<Instruction>& ins_;
  std::vector<Access> accesses_;  // per instruction, its sub-blocks included; empty: not listed yet
  std::vector<int> placers_;      // per slot, the instructions of known shapes that write it
};

}  // namespace

void JoinCopies(PlanDraft& draft, int block) { Joiner(draft, block).Run(); }

}  // namespace heddle

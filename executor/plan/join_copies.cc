#include "executor/plan/join_copies.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/interrupts.h"
#include "executor/plan/arena_sharing.h"
#include "executor/plan/plan_draft.h"

namespace heddle {
namespace {

// Removes copies of one block by making two slots share memory.
class CopyJoiner {
 public:
  CopyJoiner(PlanDraft& d, int block, JoinTables& tables)
      : d_(d),
        plan_(*d.plan),
        block_(block),
        ins_(plan_.blocks[block].instructions),
        tables_(tables) {}

 protected:
  const Slot& At(uint32_t s) const { return plan_.slots[s]; }

  // Makes the slot, and all views of it, views of `base`.
  void MakeView(uint32_t slot, uint32_t base) {
    std::vector<uint32_t> views = std::move(tables_.views[slot]);
    tables_.views.erase(slot);
    views.push_back(slot);
    plan_.slots[slot].storage = Storage::kView;
    for (uint32_t s : views) plan_.slots[s].base = base;
    std::vector<uint32_t>& all = tables_.views[base];
    if (all.size() < views.size()) std::swap(all, views);
    all.insert(all.end(), views.begin(), views.end());
  }

  PlanDraft& d_;
  Plan& plan_;
  const int block_;
  std::vector<Instruction>& ins_;
  JoinTables& tables_;
};

class Joiner : CopyJoiner {
 public:
  using CopyJoiner::CopyJoiner;

  void Run() {
    std::vector<bool> gone(ins_.size(), false);
    for (size_t i = 0; i < ins_.size(); ++i) {
      if (ins_[i].op.def->views().empty() || ins_[i].mode != Instruction::Mode::kStatic) continue;
      uint32_t from, to;
      if (!IsCopy(ins_[i], &from, &to) || d_.HasControlEdges(ins_[i])) continue;
      if (uses_.empty()) ListUses();
      const size_t made = MadeAt(from, i);
      if (made == ins_.size() || !MayJoin(made, i, from, to)) continue;
      // A variable gets its place in memory from an instruction of known shapes that writes it. One
      // such instruction must be left.
      if (tables_.placers[to] < 2) continue;
      --tables_.placers[to];
      Join(from, to);
      gone[i] = true;
    }
    EraseMarked(gone, &ins_);
  }

 private:
  // Positions of the instructions that use a slot or a view of it, directly or in their sub-blocks.
  struct Uses {
    std::set<size_t> reads, writes;
  };

  // Whether the instruction copies a value of this block into a variable with a place.
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

  void ListUses() {
    for (size_t i = 0; i < ins_.size(); ++i) {
      LookForInterrupt();
      const Instruction& in = ins_[i];
      const auto add = [&](const auto& slots, std::set<size_t> Uses::*list) {
        for (uint32_t s : slots)
          if (s != kNoSlot) (uses_[plan_.RootOf(s)].*list).insert(i);
      };
      add(in.op.in, &Uses::reads);
      add(in.op.out, &Uses::writes);
      for (uint32_t s : in.op.out)
        if (s != kNoSlot) writers_[s].push_back(i);
      for (const auto& r : in.rewrites) uses_[plan_.RootOf(r.real)].writes.insert(i);
      for (int sub : BlocksOf(plan_, in)) {
        add(tables_.access.Of(sub).reads, &Uses::reads);
        add(tables_.access.Of(sub).writes, &Uses::writes);
      }
    }
  }

  // The position of the instruction before `end` that writes the value; ins_.size(): there is none
  // to join.
  size_t MadeAt(uint32_t value, size_t end) const {
    const auto found = writers_.find(value);
    if (found == writers_.end()) return ins_.size();
    const auto& all = found->second;
    const auto next = std::lower_bound(all.begin(), all.end(), end);
    if (next == all.begin()) return ins_.size();
    const size_t i = *std::prev(next);
    return ins_[i].mode == Instruction::Mode::kStatic ? i : ins_.size();
  }

  // Whether a position lies strictly between `from` and `to`.
  static bool AnyBetween(const std::set<size_t>& positions, size_t from, size_t to) {
    const auto next = positions.upper_bound(from);
    return next != positions.end() && *next < to;
  }

  bool MayJoin(size_t made, size_t copied, uint32_t value, uint32_t variable) {
    const Uses &old = uses_[variable], &next = uses_[value];
    if (old.writes.contains(made)) return false;
    if (old.reads.contains(made) && !WorksInPlace(ins_[made], value, variable)) return false;
    if (AnyBetween(old.reads, made, copied) || AnyBetween(old.writes, made, copied)) return false;
    // If the variable is rewritten after the copy, readers after that would find the new value.
    const auto rewritten = old.writes.upper_bound(copied);
    return rewritten == old.writes.end() || !AnyBetween(next.reads, *rewritten, ins_.size());
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
    MakeView(value, variable);
    Uses moved = std::move(uses_[value]);
    uses_.erase(value);
    Unite(&uses_[variable].reads, &moved.reads);
    Unite(&uses_[variable].writes, &moved.writes);
  }
  // Inserts the smaller set into the larger one, so that many joins stay cheap.
  static void Unite(std::set<size_t>* all, std::set<size_t>* more) {
    if (all->size() < more->size()) std::swap(*all, *more);
    all->insert(more->begin(), more->end());
  }

  std::unordered_map<uint32_t, Uses> uses_;                    // by root; empty: not listed yet
  std::unordered_map<uint32_t, std::vector<size_t>> writers_;  // by slot, ascending
};

// A loop inside a loop usually carries a variable of its own, which begins as a copy of the outer
// variable and is copied back after the inner loop. If nothing uses the outer variable in between,
// nor the inner one elsewhere, both become one.
class VariableJoiner : CopyJoiner {
 public:
  using CopyJoiner::CopyJoiner;

  void Run() {
    std::map<std::pair<uint32_t, uint32_t>, std::vector<size_t>> copies;  // ascending
    uint32_t outer, inner;
    for (size_t i = 0; i < ins_.size(); ++i)
      if (IsCopy(ins_[i], &outer, &inner)) copies[{outer, inner}].push_back(i);
    std::vector<bool> gone(ins_.size(), false);
    for (const auto& [pair, starts] : copies) {
      std::tie(outer, inner) = pair;
      const auto back = copies.find({inner, outer});
      if (back == copies.end() || outer == inner || IsView(outer) || IsView(inner)) continue;
      const auto end = std::upper_bound(back->second.begin(), back->second.end(), starts[0]);
      if (end == back->second.end() || !MayJoin(starts[0], *end, outer, inner)) continue;
      MakeView(inner, outer);
      --tables_.placers[inner];
      --tables_.placers[outer];
      gone[starts[0]] = gone[*end] = true;
    }
    EraseMarked(gone, &ins_);
  }

 private:
  bool IsView(uint32_t s) const { return At(s).storage == Storage::kView; }

  // Whether the instruction copies one variable with a place into another.
  bool IsCopy(const Instruction& in, uint32_t* from, uint32_t* to) const {
    if (in.op.def->views().empty() || in.mode != Instruction::Mode::kStatic || in.once ||
        in.op.in.size() != 1 || in.op.out.size() != 1 || d_.HasControlEdges(in))
      return false;
    *from = in.op.in[0];
    *to = in.op.out[0];
    if (*from == kNoSlot || *to == kNoSlot || !d_.IsFixed(*from) || !d_.IsFixed(*to)) return false;
    const Slot &f = At(*from), &t = At(*to);
    return f.storage == Storage::kPool && t.storage == Storage::kPool && f.dtype == t.dtype &&
           f.shape() == t.shape();
  }

  // Whether the copy at `i` is the first use of the inner variable, the copy at `j` its last, and
  // nothing between them uses the outer one. Another instruction of known shapes must give the
  // outer one its place.
  bool MayJoin(size_t i, size_t j, uint32_t outer, uint32_t inner) const {
    if (d_.fetched[inner] || tables_.placers[outer] < 2 || tables_.visits > kMostVisits)
      return false;
    std::vector<bool> within(plan_.blocks.size(), false);
    for (size_t k = i + 1; k < j; ++k) Mark(ins_[k], &within);
    for (size_t b = 0; b < plan_.blocks.size(); ++b) {
      const auto& ins = plan_.blocks[b].instructions;
      tables_.visits += ins.size();
      for (size_t k = 0; k < ins.size(); ++k) {
        LookForInterrupt();
        const bool here = static_cast<int>(b) == block_;
        if (here && (k == i || k == j)) continue;
        const bool between = within[b] || (here && k > i && k < j);
        if (Names(ins[k], between ? outer : inner)) return false;
      }
    }
    return true;
  }
  void Mark(const Instruction& in, std::vector<bool>* within) const {
    for (const int b : BlocksOf(plan_, in)) {
      if ((*within)[b]) continue;
      (*within)[b] = true;
      for (const Instruction& inner : plan_.blocks[b].instructions) Mark(inner, within);
    }
  }
  bool Names(const Instruction& in, uint32_t root) const {
    const auto is_root = [&](uint32_t s) { return s != kNoSlot && plan_.RootOf(s) == root; };
    return std::any_of(in.op.in.begin(), in.op.in.end(), is_root) ||
           std::any_of(in.op.out.begin(), in.op.out.end(), is_root) ||
           std::any_of(in.rewrites.begin(), in.rewrites.end(),
                       [&](const auto& r) { return is_root(r.real); });
  }

  // Each candidate costs a walk over the whole program. Beyond this many instructions visited,
  // copies stay.
  static constexpr size_t kMostVisits = size_t{1} << 22;
};

}  // namespace

JoinTables::JoinTables(const Plan& plan) : placers(plan.slots.size(), 0), access(plan) {
  using Mode = Instruction::Mode;
  for (const BlockPlan& block : plan.blocks)
    for (const Instruction& in : block.instructions) {
      if (in.mode != Mode::kStatic && in.mode != Mode::kReplace) continue;
      for (uint32_t s : in.op.out)
        if (s != kNoSlot) ++placers[s];
    }
  for (uint32_t s = 0; s < plan.slots.size(); ++s)
    if (plan.slots[s].base != kNoSlot) views[plan.slots[s].base].push_back(s);
}

void JoinCopies(PlanDraft& draft, int block, JoinTables& tables) {
  Joiner(draft, block, tables).Run();
  VariableJoiner(draft, block, tables).Run();
}

}  // namespace heddle

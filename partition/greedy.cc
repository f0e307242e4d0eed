#include "partition/greedy.h"

#include <algorithm>
#include <unordered_set>

namespace heddle::partition {
namespace {

struct Growing {
  Group group;
  int32_t grew_at = 0;  // place of the operator that joined last
  // Counted only where the target limits them.
  std::unordered_set<ValueId> inputs;
  int64_t outputs = 0;
  std::vector<OpIndex> refused;  // helpers that would have broken a limit when the group began
};

class Greedy {
 public:
  Greedy(const Matches& matches, Quotient* quotient, Claimed* claimed, std::vector<Left>* left)
      : m_(matches),
        g_(matches.graph()),
        t_(matches.target()),
        quotient_(*quotient),
        claimed_(*claimed),
        left_(*left),
        owner_(static_cast<size_t>(g_.size()), kNoGroup),
        helpers_(static_cast<size_t>(g_.size())),
        seen_(static_cast<size_t>(g_.size())),
        near_seen_(static_cast<size_t>(g_.size())),
        joining_(static_cast<size_t>(g_.size())),
        value_seen_(g_.num_values()) {
    limits_values_ = t_.limits.max_inputs < Limits::kNone || t_.limits.max_outputs < Limits::kNone;
  }

  std::vector<Group> Run() {
    for (OpIndex i = 0; i < g_.size(); ++i)
      if (m_.helper(i)) CountReaders(i);
    for (const OpIndex i : g_.walk())
      if (m_.taken(i) && !claimed_[At(i)]) Place(i);
    return Finish();
  }

 private:
  // What is known of a helper's readers.
  struct HelperState {
    int64_t readers = 0;  // different operators
    bool kept = false;
    int group = kNoGroup;  // of the readers that are in one
    int64_t in_group = 0;
    bool mixed = false;  // readers are in several
  };

  static size_t At(OpIndex i) { return static_cast<size_t>(i); }
  bool IsFreeHelper(OpIndex i) const { return m_.helper(i) && !claimed_[At(i)]; }

  void CountReaders(OpIndex i) {
    HelperState& state = helpers_[At(i)];
    ++round_;
    for (const Use& use : g_.writes(i)) {
      state.kept = state.kept || g_.value(use.value).kept;
      for (const OpIndex reader : g_.readers(use.value)) {
        if (seen_[At(reader)] == round_) continue;
        seen_[At(reader)] = round_;
        ++state.readers;
      }
    }
  }

  // Groups that feed `i`, directly or through helpers that are in none; the latest first.
  const std::vector<int>& Near(OpIndex i) {
    constexpr int kMost = 1 << 12;  // helpers in a row, which nobody writes
    near_.clear();
    todo_.assign(g_.makers(i).begin(), g_.makers(i).end());
    ++near_round_;
    for (int steps = 0; !todo_.empty() && steps < kMost; ++steps) {
      const OpIndex p = todo_.back();
      todo_.pop_back();
      if (near_seen_[At(p)] == near_round_) continue;
      near_seen_[At(p)] = near_round_;
      const int group = owner_[At(p)];
      if (group != kNoGroup) {
        if (std::find(near_.begin(), near_.end(), group) == near_.end()) near_.push_back(group);
      } else if (IsFreeHelper(p)) {
        todo_.insert(todo_.end(), g_.makers(p).begin(), g_.makers(p).end());
      }
    }
    std::sort(near_.begin(), near_.end(),
              [this](int a, int b) { return groups_[At(a)].grew_at > groups_[At(b)].grew_at; });
    return near_;
  }

  UnitId FirstThatTakes(OpIndex i, const std::vector<UnitId>& units) const {
    for (const UnitId unit : units)
      if (m_.cost(i, unit) != nullptr) return unit;
    return -1;
  }

  void Place(OpIndex i) {
    for (const int q : Near(i))
      if (Join(i, q)) return;
    const UnitId unit = FirstThatTakes(i, t_.first);
    if (unit < 0) {
      left_[At(i)] = Left::kUnreachable;
      return;
    }
    const auto q = static_cast<int>(groups_.size());
    Growing& growing = groups_.emplace_back();
    CollectHelpers(i, q);
    if (!Fits(q) || !quotient_.Merge(added_)) {
      growing.refused.assign(added_.begin() + 1, added_.end());
      added_.resize(1);
      if (!Fits(q)) {
        left_[At(i)] = Left::kLimits;
        groups_.pop_back();
        return;
      }
    }
    Add(i, unit, q);
  }

  bool Join(OpIndex i, int q) {
    Growing& growing = groups_[At(q)];
    const UnitId unit = FirstThatTakes(i, t_.next[static_cast<size_t>(growing.group.units.back())]);
    if (unit < 0 || static_cast<int64_t>(growing.group.ops.size()) >= t_.limits.max_group)
      return false;
    CollectHelpers(i, q);
    if (!IsConnected(i, q) || !Fits(q)) return false;
    merged_ = added_;
    merged_.push_back(growing.group.ops[0]);
    if (!quotient_.Merge(merged_)) return false;
    Add(i, unit, q);
    return true;
  }

  // Sets added_ to `i` and the free helpers all of whose readers are in group `q` with it.
  void CollectHelpers(OpIndex i, int q) {
    added_.assign(1, i);
    ++round_;  // seen_: a helper that has been counted; joining_: its readers among added_
    const auto count = [&](OpIndex helper) {
      if (!IsFreeHelper(helper)) return;
      HelperState& state = helpers_[At(helper)];
      if (seen_[At(helper)] != round_) {
        seen_[At(helper)] = round_;
        joining_[At(helper)] = 0;
      }
      const int64_t here = ++joining_[At(helper)];
      const bool elsewhere = state.mixed || (state.in_group > 0 && state.group != q);
      if (state.kept || elsewhere || here + state.in_group != state.readers) return;
      added_.push_back(helper);
    };
    for (size_t k = 0; k < added_.size(); ++k)
      for (const OpIndex p : g_.makers(added_[k])) count(p);
    // Those that the group refused when it began may fit now.
    for (const OpIndex helper : groups_[At(q)].refused)
      if (IsFreeHelper(helper) && !helpers_[At(helper)].mixed && helpers_[At(helper)].group == q &&
          seen_[At(helper)] != round_ &&
          helpers_[At(helper)].in_group == helpers_[At(helper)].readers) {
        added_.push_back(helper);
        for (const OpIndex p : g_.makers(helper)) count(p);
      }
  }

  bool IsInside(OpIndex i, int q) const {
    return owner_[At(i)] == q || std::find(added_.begin(), added_.end(), i) != added_.end();
  }
  // A helper connects only where something in the group feeds it.
  bool IsFed(OpIndex helper, int q) const {
    const auto makers = g_.makers(helper);
    return std::any_of(makers.begin(), makers.end(), [&](OpIndex p) { return IsInside(p, q); });
  }

  // Whether values lead from `i` to an operator of group `q`, through helpers where need be.
  bool IsConnected(OpIndex i, int q) {
    const auto is_op = [&](OpIndex p) { return owner_[At(p)] == q && m_.taken(p); };
    for (const OpIndex p : g_.makers(i))
      if (is_op(p)) return true;
    std::vector<OpIndex> todo = {i};
    std::unordered_set<OpIndex> seen = {i};
    bool found = false;
    const auto visit = [&](OpIndex p) {
      if (!IsInside(p, q)) return;
      found = found || is_op(p);
      if (m_.helper(p) && IsFed(p, q) && seen.insert(p).second) todo.push_back(p);
    };
    while (!todo.empty() && !found) {
      const OpIndex x = todo.back();
      todo.pop_back();
      for (const OpIndex p : g_.makers(x)) visit(p);
      for (const Use& use : g_.writes(x))
        for (const OpIndex r : g_.readers(use.value)) {
          if (found) break;
          visit(r);
        }
    }
    return found;
  }

  bool HasReaderOutside(ValueId v, int q) const {
    const auto readers = g_.readers(v);
    return g_.value(v).kept ||
           !std::all_of(readers.begin(), readers.end(), [&](OpIndex r) { return IsInside(r, q); });
  }

  // Whether group `q` keeps to the limits of inputs and outputs with added_. Sets what changes.
  bool Fits(int q) {
    new_inputs_.clear();
    lost_inputs_.clear();
    more_outputs_ = 0;
    if (!limits_values_) return true;
    const Growing& growing = groups_[At(q)];
    ++value_round_;
    for (const OpIndex i : added_) {
      for (const Use& use : g_.reads(i)) {
        if (value_seen_[use.value] == value_round_) continue;
        value_seen_[use.value] = value_round_;
        const Value& value = g_.value(use.value);
        const bool inside = value.maker != kNoOp && IsInside(value.maker, q);
        if (!inside && !value.constant && !growing.inputs.contains(use.value))
          new_inputs_.push_back(use.value);
        if (value.maker != kNoOp && owner_[At(value.maker)] == q && !HasReaderOutside(use.value, q))
          --more_outputs_;
      }
      for (const Use& use : g_.writes(i)) {
        if (growing.inputs.contains(use.value)) lost_inputs_.push_back(use.value);
        if (HasReaderOutside(use.value, q)) ++more_outputs_;
      }
    }
    const auto inputs = static_cast<int64_t>(growing.inputs.size() + new_inputs_.size()) -
                        static_cast<int64_t>(lost_inputs_.size());
    return inputs <= t_.limits.max_inputs &&
           growing.outputs + more_outputs_ <= t_.limits.max_outputs;
  }

  void Add(OpIndex i, UnitId unit, int q) {
    Growing& growing = groups_[At(q)];
    growing.group.ops.push_back(i);
    growing.group.units.push_back(unit);
    growing.group.helpers.insert(growing.group.helpers.end(), added_.begin() + 1, added_.end());
    growing.grew_at = g_.place(i);
    growing.inputs.insert(new_inputs_.begin(), new_inputs_.end());
    for (const ValueId v : lost_inputs_) growing.inputs.erase(v);
    growing.outputs += more_outputs_;
    for (const OpIndex member : added_) {
      owner_[At(member)] = q;
      claimed_[At(member)] = true;
      for (const OpIndex p : g_.makers(member)) {
        if (!m_.helper(p)) continue;
        HelperState& state = helpers_[At(p)];
        state.mixed = state.mixed || (state.in_group > 0 && state.group != q);
        state.group = q;
        ++state.in_group;
      }
    }
  }

  std::vector<Group> Finish() {
    Measure measure(m_);
    std::vector<Group> groups;
    for (Growing& growing : groups_) {
      Group& group = growing.group;
      std::sort(group.helpers.begin(), group.helpers.end());
      Left why = Left::kNo;
      if (static_cast<int64_t>(group.ops.size()) < t_.limits.min_group)
        why = Left::kSmall;
      else if (t_.objective == Objective::kCost &&
               measure.CostOf(group) >= measure.HostCostOf(group))
        why = Left::kCostly;
      if (why == Left::kNo) {
        groups.push_back(std::move(group));
        continue;
      }
      quotient_.Split(group.ops[0]);
      for (const OpIndex i : group.ops) {
        claimed_[At(i)] = false;
        left_[At(i)] = why;
      }
      for (const OpIndex i : group.helpers) claimed_[At(i)] = false;
    }
    return groups;
  }

  const Matches& m_;
  const Graph& g_;
  const Target& t_;
  Quotient& quotient_;
  Claimed& claimed_;
  std::vector<Left>& left_;
  std::vector<int> owner_;
  std::vector<Growing> groups_;
  std::vector<HelperState> helpers_;
  bool limits_values_ = false;
  // Scratch.
  std::vector<uint32_t> seen_, near_seen_;
  std::vector<int64_t> joining_;
  std::vector<uint32_t> value_seen_;
  uint32_t round_ = 0, near_round_ = 0, value_round_ = 0;
  std::vector<int> near_;
  std::vector<OpIndex> todo_, added_, merged_;
  std::vector<ValueId> new_inputs_, lost_inputs_;
  int64_t more_outputs_ = 0;
};

}  // namespace

std::vector<Group> GroupGreedily(const Matches& matches, Quotient* quotient, Claimed* claimed,
                                 std::vector<Left>* left) {
  return Greedy(matches, quotient, claimed, left).Run();
}

}  // namespace heddle::partition

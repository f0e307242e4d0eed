#include "partition/greedy.h"

#include <algorithm>
#include <unordered_set>

namespace heddle::partition {
namespace {

struct Growing {
  Group group;
  int32_t grew_at = 0;  // index in the walk of the operator that joined last
  // Counted only if the target limits them.
  std::unordered_set<ValueId> inputs;
  int64_t outputs = 0;
  std::vector<OpIndex> refused;  // helpers that would have exceeded a limit when the group began
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
        feeders_(static_cast<size_t>(g_.size()), -1),
        seen_(static_cast<size_t>(g_.size())),
        added_in_(static_cast<size_t>(g_.size())),
        joining_(static_cast<size_t>(g_.size())),
        value_seen_(g_.num_values()),
        value_readers_(g_.num_values()),
        readers_inside_(g_.num_values()),
        last_reader_(g_.num_values(), kNoOp),
        last_counted_(g_.num_values(), kNoOp) {
    limits_values_ = t_.limits.max_inputs < Limits::kNone || t_.limits.max_outputs < Limits::kNone;
  }

  std::vector<Group> Run() {
    for (OpIndex i = 0; i < g_.size(); ++i)
      if (m_.helper(i)) CountReaders(i);
    for (const OpIndex i : g_.walk()) {
      if (claimed_[At(i)]) continue;
      if (m_.taken(i))
        Place(i);
      else if (m_.helper(i))
        KeepFeeders(i);
    }
    return Finish();
  }

 private:
  // The readers of a helper.
  struct HelperState {
    int64_t readers = 0;  // the number of different operators
    bool kept = false;
    int group = kNoGroup;  // the group of those that are in one
    int64_t in_group = 0;
    bool mixed = false;  // they are in several groups
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

  // Adds the groups that feed `i`, directly or through helpers that are in no group.
  //
  // What precedes a free helper no longer changes when the walk reaches it, since its readers are
  // free too: its groups are found once.
  void AddFeeders(OpIndex i, std::vector<int>* groups) const {
    constexpr size_t kMost = 256;  // limit for a chain of helpers, each of which adds groups
    const auto add = [&](int group) {
      if (groups->size() < kMost &&
          std::find(groups->begin(), groups->end(), group) == groups->end())
        groups->push_back(group);
    };
    for (const OpIndex p : g_.makers(i))
      if (owner_[At(p)] != kNoGroup) add(owner_[At(p)]);
    for (const OpIndex p : g_.makers(i))
      if (owner_[At(p)] == kNoGroup && feeders_[At(p)] >= 0)
        for (const int group : feeder_sets_[At(feeders_[At(p)])]) add(group);
  }

  void KeepFeeders(OpIndex helper) {
    // Along a chain of helpers the groups are the same, and stored once.
    const auto makers = g_.makers(helper);
    if (makers.size() == 1 && owner_[At(makers[0])] == kNoGroup) {
      feeders_[At(helper)] = feeders_[At(makers[0])];
      return;
    }
    std::vector<int> groups;
    AddFeeders(helper, &groups);
    if (groups.empty()) return;
    feeders_[At(helper)] = static_cast<int>(feeder_sets_.size());
    feeder_sets_.push_back(std::move(groups));
  }

  // The groups that feed the operator, the one that grew last first.
  const std::vector<int>& Near(OpIndex i) {
    near_.clear();
    AddFeeders(i, &near_);
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
      ++round_;
      added_.clear();
      Include(i);
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
    // Values connect the operator with the group: if a helper between them stays outside, Merge
    // finds the path through it.
    if (!Fits(q)) return false;
    merged_ = added_;
    merged_.push_back(growing.group.ops[0]);
    if (!quotient_.Merge(merged_)) return false;
    Add(i, unit, q);
    return true;
  }

  void Include(OpIndex i) {
    added_.push_back(i);
    added_in_[At(i)] = round_;
  }

  // Sets added_ to `i` and the free helpers all of whose readers are then in group `q`.
  void CollectHelpers(OpIndex i, int q) {
    ++round_;  // seen_: a helper has been counted; joining_: its readers in added_
    added_.clear();
    Include(i);
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
      Include(helper);
    };
    for (size_t k = 0; k < added_.size(); ++k)
      for (const OpIndex p : g_.makers(added_[k])) count(p);
    // Helpers that the group refused at its beginning may fit now.
    for (const OpIndex helper : groups_[At(q)].refused)
      if (IsFreeHelper(helper) && !helpers_[At(helper)].mixed && helpers_[At(helper)].group == q &&
          seen_[At(helper)] != round_ &&
          helpers_[At(helper)].in_group == helpers_[At(helper)].readers) {
        Include(helper);
        for (const OpIndex p : g_.makers(helper)) count(p);
      }
  }

  bool IsInside(OpIndex i, int q) const { return owner_[At(i)] == q || added_in_[At(i)] == round_; }
  // Whether group `q` with added_ respects the limits of inputs and outputs. Sets the changes.
  bool Fits(int q) {
    new_inputs_.clear();
    lost_inputs_.clear();
    more_outputs_ = 0;
    if (!limits_values_) return true;
    const Growing& growing = groups_[At(q)];
    ++value_round_;
    for (const OpIndex i : added_)
      for (const Use& use : g_.reads(i)) Read(use.value, i, q);
    for (const OpIndex i : added_)
      for (const Use& use : g_.writes(i))
        if (growing.inputs.contains(use.value)) lost_inputs_.push_back(use.value);
    // The others are helpers, which only the group reads.
    for (const Use& use : g_.writes(added_[0])) more_outputs_ += IsNeededOutside(use.value, 0);
    const auto inputs = static_cast<int64_t>(growing.inputs.size() + new_inputs_.size()) -
                        static_cast<int64_t>(lost_inputs_.size());
    return inputs <= t_.limits.max_inputs &&
           growing.outputs + more_outputs_ <= t_.limits.max_outputs;
  }

  // `joining`: the number of its readers that join the group; those already in it are counted.
  bool IsNeededOutside(ValueId v, int64_t joining) const {
    return g_.value(v).kept ||
           readers_inside_[v] + joining < static_cast<int64_t>(g_.readers(v).size());
  }

  // Counts a read of the value by an operator of added_.
  void Read(ValueId v, OpIndex reader, int q) {
    const Value& value = g_.value(v);
    if (value_seen_[v] != value_round_) {
      value_seen_[v] = value_round_;
      value_readers_[v] = 0;
      last_reader_[v] = kNoOp;
      const bool inside = value.maker != kNoOp && IsInside(value.maker, q);
      if (!inside && !value.constant && !groups_[At(q)].inputs.contains(v))
        new_inputs_.push_back(v);
    }
    if (last_reader_[v] == reader) return;  // an operator may read a value twice
    last_reader_[v] = reader;
    ++value_readers_[v];
    // A value of the group is no longer an output when its last reader joins.
    if (value.maker != kNoOp && owner_[At(value.maker)] == q &&
        !IsNeededOutside(v, value_readers_[v]))
      --more_outputs_;
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
    }
    if (limits_values_) CountInside(q);
    for (const OpIndex member : added_) {
      for (const OpIndex p : g_.makers(member)) {
        if (!m_.helper(p)) continue;
        HelperState& state = helpers_[At(p)];
        state.mixed = state.mixed || (state.in_group > 0 && state.group != q);
        state.group = q;
        ++state.in_group;
      }
    }
  }

  // Counts the readers of the group's values, with added_.
  void CountInside(int q) {
    ++value_round_;
    for (const OpIndex member : added_)
      for (const Use& use : g_.writes(member)) {
        const auto readers = g_.readers(use.value);
        value_seen_[use.value] = value_round_;
        readers_inside_[use.value] = std::count_if(readers.begin(), readers.end(),
                                                   [&](OpIndex r) { return owner_[At(r)] == q; });
      }
    for (const OpIndex member : added_)
      for (const Use& use : g_.reads(member)) {
        const OpIndex maker = g_.value(use.value).maker;
        if (maker == kNoOp || owner_[At(maker)] != q || value_seen_[use.value] == value_round_)
          continue;
        if (last_counted_[use.value] == member) continue;
        last_counted_[use.value] = member;
        ++readers_inside_[use.value];
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
  std::vector<int> feeders_;  // of each helper: an index into feeder_sets_; -1: none
  std::vector<std::vector<int>> feeder_sets_;
  // Work space.
  std::vector<uint32_t> seen_, added_in_;
  std::vector<int64_t> joining_;
  std::vector<uint32_t> value_seen_;
  std::vector<int64_t> value_readers_;   // the number of readers in added_
  std::vector<int64_t> readers_inside_;  // of values of a group: the number of readers in the group
  std::vector<OpIndex> last_reader_, last_counted_;
  uint32_t round_ = 0, value_round_ = 0;
  std::vector<int> near_;
  std::vector<OpIndex> added_, merged_;
  std::vector<ValueId> new_inputs_, lost_inputs_;
  int64_t more_outputs_ = 0;
};

}  // namespace

std::vector<Group> GroupGreedily(const Matches& matches, Quotient* quotient, Claimed* claimed,
                                 std::vector<Left>* left) {
  return Greedy(matches, quotient, claimed, left).Run();
}

}  // namespace heddle::partition

#include "partition/improve.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

#include "partition/schedule.h"
#include "partition/window.h"

namespace heddle::partition {
namespace {

// Budgets in steps (a visit of an operator or a set; some 25,000 per millisecond). Steps and not
// time, so that a program always gets the same groups. Large programs, whose greedy grouping takes
// long, get kStepsLess fewer per operator.
constexpr int64_t kMostSteps = 3'000'000, kLeastSteps = 1'000'000, kStepsLess = 20;
constexpr int64_t kWholeSteps = 40'000'000;  // for a program that is one window
constexpr int64_t kWindowSteps = 500'000;    // for one window among many

class Improver {
 public:
  Improver(const Matches& matches, Quotient* quotient, Claimed* claimed, std::vector<Group>* groups)
      : m_(matches),
        g_(matches.graph()),
        t_(matches.target()),
        quotient_(*quotient),
        claimed_(*claimed),
        groups_(*groups),
        budget_(std::max(kMostSteps - kStepsLess * g_.size(), kLeastSteps)),
        measure_(matches),
        solver_(matches, *quotient),
        owner_(At(g_.size()), kNoGroup),
        seen_(At(g_.size())) {}

  void Run() {
    for (OpIndex i = 0; i < g_.size(); ++i)
      if (!claimed_[At(i)] && (m_.taken(i) || m_.helper(i))) free_.push_back(i);
    scores_.reserve(groups_.size());
    for (size_t q = 0; q < groups_.size(); ++q) {
      for (const OpIndex i : groups_[q].ops) owner_[At(i)] = static_cast<int>(q);
      for (const OpIndex i : groups_[q].helpers) owner_[At(i)] = static_cast<int>(q);
      scores_.push_back(ScoreOf(groups_[q]));
    }
    if (!WholeWindow()) {
      ChooseUnits();
      MergePairs();
      Windows();
    }
    std::erase_if(groups_, [](const Group& group) { return group.ops.empty(); });
  }

 private:
  static size_t At(OpIndex i) { return static_cast<size_t>(i); }
  bool IsOurs(OpIndex i) const {
    return owner_[At(i)] != kNoGroup || (!claimed_[At(i)] && (m_.taken(i) || m_.helper(i)));
  }
  Score ScoreOf(const Group& group) {
    return ScoreOfGroup(t_, group.ops.size(), measure_.CostOf(group));
  }

  // Groups all operators as one window, if they are few. False: they are not, or it would take too
  // long.
  bool WholeWindow() {
    std::vector<OpIndex> ops = free_;
    for (const Group& group : groups_) {
      ops.insert(ops.end(), group.ops.begin(), group.ops.end());
      ops.insert(ops.end(), group.helpers.begin(), group.helpers.end());
      if (ops.size() > kMostInWindow) return false;
    }
    if (ops.size() > kMostInWindow) return false;
    int64_t budget = kWholeSteps;
    Reconsider(ops, &budget);
    return budget >= 0;
  }

  // Gives whole groups and free operators their best grouping; returns whether it is a better one.
  bool Reconsider(const std::vector<OpIndex>& ops, int64_t* budget) {
    std::vector<int> old;
    Score present;
    for (const OpIndex i : ops) {
      const int q = owner_[At(i)];
      if (q == kNoGroup) {
        present = present + ScoreOfHost(m_.host_cost(i));
      } else if (std::find(old.begin(), old.end(), q) == old.end()) {
        old.push_back(q);
        present = present + scores_[At(q)];
      }
    }
    for (const int q : old) quotient_.Split(groups_[At(q)].ops[0]);
    std::optional<std::vector<Group>> better = solver_.Best(ops, present, budget);
    if (better && !Contract(*better)) better.reset();
    if (!better) {
      for (const int q : old) ContractOne(groups_[At(q)], /*patient=*/true);
      return false;
    }
    for (const OpIndex i : ops) {
      owner_[At(i)] = kNoGroup;
      claimed_[At(i)] = false;
    }
    for (const int q : old) groups_[At(q)] = Group();
    for (Group& group : *better) {
      int q = kNoGroup;
      if (old.empty()) {
        q = static_cast<int>(groups_.size());
        groups_.emplace_back();
        scores_.emplace_back();
      } else {
        q = old.back();
        old.pop_back();
      }
      Put(std::move(group), q);
    }
    return true;
  }

  void Put(Group group, int q) {
    scores_[At(q)] = ScoreOf(group);
    for (const auto* list : {&group.ops, &group.helpers})
      for (const OpIndex i : *list) {
        owner_[At(i)] = q;
        claimed_[At(i)] = true;
      }
    groups_[At(q)] = std::move(group);
  }

  bool ContractOne(const Group& group, bool patient = false) {
    std::vector<OpIndex> members = group.ops;
    members.insert(members.end(), group.helpers.begin(), group.helpers.end());
    return quotient_.Merge(members, patient);
  }
  // Contracts all groups, or none.
  bool Contract(const std::vector<Group>& groups) {
    for (size_t k = 0; k < groups.size(); ++k) {
      if (ContractOne(groups[k])) continue;
      while (k-- > 0) quotient_.Split(groups[k].ops[0]);
      return false;
    }
    return true;
  }

  // Chooses the cheapest units for each group's sequence.
  void ChooseUnits() {
    for (size_t q = 0; q < groups_.size(); ++q) {
      std::vector<UnitId> units;
      if (!std::isfinite(CheapestUnits(m_, groups_[q].ops, &units))) continue;
      std::swap(groups_[q].units, units);
      const Score score = ScoreOf(groups_[q]);
      if (score.BetterThan(scores_[q]))
        scores_[q] = score;
      else
        std::swap(groups_[q].units, units);
    }
  }

  // One operator of each group, and each free operator that a unit takes, that reads a value of the
  // group.
  std::vector<OpIndex> FollowersOf(int q) {
    constexpr size_t kMost = 16;
    std::vector<OpIndex> followers;  // one operator per group
    ++round_;
    for (const OpIndex i : groups_[At(q)].ops) {
      for (const Use& use : g_.writes(i)) {
        for (const OpIndex reader : g_.readers(use.value)) {
          --budget_;
          const int other = owner_[At(reader)];
          if (followers.size() == kMost || budget_ < 0) return followers;
          if (other == q || !IsOurs(reader) || !m_.taken(reader)) continue;
          const OpIndex key = other == kNoGroup ? reader : groups_[At(other)].ops[0];
          if (seen_[At(key)] == round_) continue;
          seen_[At(key)] = round_;
          followers.push_back(key);
        }
      }
    }
    return followers;
  }

  void MergePairs() {
    std::deque<int> todo;
    for (size_t q = 0; q < groups_.size(); ++q) todo.push_back(static_cast<int>(q));
    int64_t budget = budget_ / 2;
    std::swap(budget, budget_);
    while (!todo.empty() && budget_ > 0) {
      const int q = todo.front();
      todo.pop_front();
      if (groups_[At(q)].ops.empty()) continue;
      for (const OpIndex other : FollowersOf(q)) {
        if (!MergeWith(q, other)) continue;
        todo.push_back(q);
        break;
      }
    }
    budget_ = budget + std::max<int64_t>(budget_, 0);
  }

  // Merges the group of `other`, or `other` alone, into group `q` if that is better and legal.
  bool MergeWith(int q, OpIndex other) {
    const int r = owner_[At(other)];
    const Group alone = {{other}, {}, {}};
    const Group& a = groups_[At(q)];
    const Group& b = r == kNoGroup ? alone : groups_[At(r)];
    const size_t size = a.ops.size() + b.ops.size();
    budget_ -= static_cast<int64_t>(8 * size);
    if (static_cast<int64_t>(size) > t_.limits.max_group) return false;
    Group merged;
    merged.helpers = a.helpers;
    merged.helpers.insert(merged.helpers.end(), b.helpers.begin(), b.helpers.end());
    std::sort(merged.helpers.begin(), merged.helpers.end());
    if (!Sequenced(a, b, &merged)) return false;
    const Score before =
        scores_[At(q)] + (r == kNoGroup ? ScoreOfHost(m_.host_cost(other)) : scores_[At(r)]);
    const Boundary boundary = measure_.BoundaryOf(merged);
    if (static_cast<int64_t>(boundary.inputs.size()) > t_.limits.max_inputs ||
        static_cast<int64_t>(boundary.outputs.size()) > t_.limits.max_outputs)
      return false;
    if (!ScoreOfGroup(t_, size, measure_.CostOf(merged, boundary)).BetterThan(before)) return false;
    if (const OpIndex both[] = {a.ops[0], b.ops[0]}; !quotient_.Merge(both)) return false;
    if (r != kNoGroup) groups_[At(r)] = Group();
    Put(std::move(merged), q);
    return true;
  }

  // Orders the operators of both: `b` after `a`, which feeds it, or all in the order of the walk,
  // whichever the units take at the lower cost. False: they take neither.
  bool Sequenced(const Group& a, const Group& b, Group* merged) {
    double best = std::numeric_limits<double>::infinity();
    std::vector<OpIndex> ops = a.ops;
    ops.insert(ops.end(), b.ops.begin(), b.ops.end());
    for (const bool walk : {false, true}) {
      if (walk)
        std::sort(ops.begin(), ops.end(),
                  [this](OpIndex x, OpIndex y) { return g_.place(x) < g_.place(y); });
      std::vector<UnitId> units;
      const double cost = CheapestUnits(m_, ops, &units);
      if (cost >= best) continue;
      best = cost;
      merged->ops = ops;
      merged->units = units;
    }
    return std::isfinite(best);
  }

  // Improves windows around groups and free operators, in the order of the walk, until nothing
  // improves.
  void Windows() {
    std::vector<OpIndex> seeds;
    for (const Group& group : groups_)
      if (!group.ops.empty()) seeds.push_back(group.ops[0]);
    for (const OpIndex i : free_)
      if (owner_[At(i)] == kNoGroup && m_.taken(i)) seeds.push_back(i);
    std::sort(seeds.begin(), seeds.end(),
              [this](OpIndex a, OpIndex b) { return g_.place(a) < g_.place(b); });
    std::deque<OpIndex> todo(seeds.begin(), seeds.end());
    constexpr int kRounds = 4;
    int64_t most = static_cast<int64_t>(kRounds * seeds.size());
    while (!todo.empty() && budget_ > 0 && most-- > 0) {
      const OpIndex seed = todo.front();
      todo.pop_front();
      const std::vector<OpIndex> window = WindowAround(seed);
      if (window.size() < 2) continue;
      int64_t budget = std::min(budget_, kWindowSteps);
      const int64_t given = budget;
      if (Reconsider(window, &budget)) todo.push_back(seed);
      budget_ -= given - budget + static_cast<int64_t>(64 * window.size());
    }
  }

  // A window: whole groups and free operators around one, along values, as many as it may hold.
  std::vector<OpIndex> WindowAround(OpIndex seed) {
    constexpr size_t kSize = 11;
    std::vector<OpIndex> window;
    ++round_;
    std::deque<OpIndex> todo = {seed};
    const auto add = [&](OpIndex i) {
      if (seen_[At(i)] == round_ || !IsOurs(i)) return;
      const int q = owner_[At(i)];
      const Group alone = {{i}, {}, {}};
      const Group& group = q == kNoGroup ? alone : groups_[At(q)];
      if (window.size() + group.ops.size() + group.helpers.size() > kSize) return;
      for (const auto* list : {&group.ops, &group.helpers})
        for (const OpIndex member : *list) {
          seen_[At(member)] = round_;
          window.push_back(member);
          todo.push_back(member);
        }
    };
    constexpr size_t kReaders = 32;
    add(seed);
    while (!todo.empty() && window.size() < kSize) {
      const OpIndex i = todo.front();
      todo.pop_front();
      for (const OpIndex p : g_.makers(i)) add(p);
      for (const Use& use : g_.writes(i)) {
        const auto readers = g_.readers(use.value);
        for (const OpIndex r : readers.first(std::min(kReaders, readers.size()))) add(r);
      }
    }
    return window;
  }

  const Matches& m_;
  const Graph& g_;
  const Target& t_;
  Quotient& quotient_;
  Claimed& claimed_;
  std::vector<Group>& groups_;  // empty ones are erased at the end
  int64_t budget_;
  Measure measure_;
  WindowSolver solver_;
  std::vector<int> owner_;
  std::vector<Score> scores_;
  std::vector<OpIndex> free_;  // at first
  std::vector<uint32_t> seen_;
  uint32_t round_ = 0;
};

}  // namespace

void Improve(const Matches& matches, Quotient* quotient, Claimed* claimed,
             std::vector<Group>* groups) {
  Improver(matches, quotient, claimed, groups).Run();
}

}  // namespace heddle::partition

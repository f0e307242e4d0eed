#include "partition/window.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "partition/schedule.h"

namespace heddle::partition {
namespace {

using Set = uint32_t;  // bit set of the window's operators, by their positions in it

// An operator or helper of the window.
struct Item {
  OpIndex op = 0;
  bool helper = false;
  // Whether the item is a helper that has readers, all of them in the window.
  bool closed = false;
  Set readers = 0;  // that read its values
  Set makers = 0;
  Set direct = 0;   // that have an edge to it
  Set outside = 0;  // that reach it only through operators outside the window
  Set earlier = 0;  // all that reach it
  Set later = 0;
  double host = 0;
};

// A value that an item of the window reads or makes.
struct Passed {
  int maker = -1;  // index of the item; -1: made outside
  Set readers = 0;
  bool needed = false;  // outside the window
  bool constant = false;
  double bytes = 0;
};

struct Candidate {
  Set set = 0;
  Score score;
  size_t ops = 0;
};

}  // namespace

class Window {
 public:
  Window(WindowSolver* solver, std::span<const OpIndex> ops, int64_t* budget)
      : m_(solver->matches_),
        g_(m_.graph()),
        t_(m_.target()),
        quotient_(solver->quotient_),
        places_(solver->places_),
        values_(solver->values_),
        reached_(solver->reached_),
        budget_(*budget),
        items_(ops.size()) {
    places_.NextRound();
    values_.NextRound();
    reached_.NextRound();
    std::vector<OpIndex> sorted(ops.begin(), ops.end());
    std::sort(sorted.begin(), sorted.end(), [&](OpIndex a, OpIndex b) {
      return quotient_.Before(quotient_.node(a), quotient_.node(b));
    });
    for (size_t k = 0; k < sorted.size(); ++k) {
      items_[k].op = sorted[k];
      places_.Set(static_cast<size_t>(sorted[k]), static_cast<int>(k));
    }
  }

  std::optional<std::vector<Group>> Solve(const Score& present) {
    Prepare();
    if (!FindWays() || !FindCandidates() || !FindBounds()) return std::nullopt;
    const Set all = All();
    if (!bounds_[all].BetterThan(present)) return std::nullopt;
    best_ = present;
    found_ = false;
    Choose(all, Score());
    if (!found_) return std::nullopt;
    std::vector<Group> groups;
    for (const Set set : best_sets_) groups.push_back(GroupOf(set));
    return groups;
  }

 private:
  Set All() const { return (Set{1} << items_.size()) - 1; }
  static Set Bit(size_t k) { return Set{1} << k; }
  int PlaceOf(OpIndex i) const {
    const int* place = places_.Find(static_cast<size_t>(i));
    return place == nullptr ? -1 : *place;
  }
  bool Spend(int64_t steps) { return (budget_ -= steps) >= 0; }

  void Prepare() {
    const auto value = [&](ValueId v) -> Passed& {
      if (values_.Find(v) == nullptr) {
        values_.Set(v, static_cast<int>(passed_.size()));
        Passed& passed = passed_.emplace_back();
        const Value& from = g_.value(v);
        passed.maker = from.maker == kNoOp ? -1 : PlaceOf(from.maker);
        passed.needed = from.kept;
        passed.constant = from.constant;
        passed.bytes = static_cast<double>(g_.bytes(v));
        for (const OpIndex reader : g_.readers(v)) {
          const int place = PlaceOf(reader);
          if (place < 0)
            passed.needed = true;
          else
            passed.readers |= Bit(static_cast<size_t>(place));
        }
        budget_ -= static_cast<int64_t>(g_.readers(v).size());
      }
      return passed_[static_cast<size_t>(*values_.Find(v))];
    };
    for (size_t k = 0; k < items_.size(); ++k) {
      Item& item = items_[k];
      item.helper = m_.helper(item.op);
      item.host = m_.host_cost(item.op);
      item.closed = item.helper;
      for (const Use& use : g_.reads(item.op)) value(use.value);
      for (const Use& use : g_.writes(item.op)) {
        const Passed& passed = value(use.value);
        item.readers |= passed.readers;
        item.closed = item.closed && !passed.needed;
      }
      item.closed = item.closed && item.readers != 0;
      for (const OpIndex p : g_.makers(item.op))
        if (const int place = PlaceOf(p); place >= 0)
          item.makers |= Bit(static_cast<size_t>(place));
      for (const OpIndex p : g_.before(item.op))
        if (const int place = PlaceOf(p); place >= 0)
          item.direct |= Bit(static_cast<size_t>(place));
    }
  }

  // Finds which items reach which. False: the budget is exhausted.
  bool FindWays() {
    const auto last = quotient_.node(items_.back().op);
    for (auto node = quotient_.node(items_[0].op);; node = quotient_.next(node)) {
      const int place = PlaceOf(node);
      Set from = 0;
      for (const OpIndex member : quotient_.members(node))
        for (const OpIndex p : g_.before(member)) {
          --budget_;
          const int source = PlaceOf(p);
          if (source >= 0) {
            if (place < 0) from |= Bit(static_cast<size_t>(source));
          } else if (const Set* sources = reached_.Find(static_cast<size_t>(quotient_.node(p)))) {
            from |= *sources;
          }
        }
      if (budget_ < 0) return false;
      if (place >= 0)
        items_[static_cast<size_t>(place)].outside = from;
      else if (from != 0)
        reached_.Set(static_cast<size_t>(node), from);
      if (node == last) break;
    }
    for (size_t k = 0; k < items_.size(); ++k) {
      const Set sources = items_[k].direct | items_[k].outside;
      for (size_t p = 0; p < k; ++p)
        if (sources & Bit(p)) items_[k].earlier |= Bit(p) | items_[p].earlier;
      for (size_t p = 0; p < k; ++p)
        if (items_[k].earlier & Bit(p)) items_[p].later |= Bit(k);
    }
    return true;
  }

  bool IsConvex(Set set) const {
    for (size_t k = 0; k < items_.size(); ++k) {
      const Item& item = items_[k];
      if (set & Bit(k)) {
        if (item.outside & set) return false;
      } else if ((item.earlier & set) && (item.later & set)) {
        return false;
      }
    }
    return true;
  }

  // Whether the set is connected. A helper connects its readers only if something in the set feeds
  // it.
  bool IsConnected(Set set, Set ops) const {
    Set nodes = ops;
    for (size_t k = 0; k < items_.size(); ++k)
      if ((set & ~ops & Bit(k)) && (items_[k].makers & set)) nodes |= Bit(k);
    Set seen = 0, todo = ops & (~ops + 1);
    while (todo != 0) {
      const auto k = static_cast<size_t>(std::countr_zero(todo));
      seen |= Bit(k);
      todo |= (items_[k].makers | items_[k].readers) & nodes;
      todo &= ~seen;
    }
    return (ops & ~seen) == 0;
  }

  bool HelpersFit(Set helpers, Set set) const {
    for (Set rest = helpers; rest != 0; rest &= rest - 1) {
      const Item& item = items_[static_cast<size_t>(std::countr_zero(rest))];
      if (!item.closed || (item.readers & ~set)) return false;
    }
    return true;
  }

  bool FindCandidates() {
    Set ops = 0, helpers = 0;
    for (size_t k = 0; k < items_.size(); ++k) (items_[k].helper ? helpers : ops) |= Bit(k);
    std::vector<SchedulePart> parts(items_.size());
    for (size_t k = 0; k < items_.size(); ++k) {
      parts[k].choices = m_.choices(items_[k].op);
      parts[k].earlier = items_[k].earlier;
    }
    schedule_.emplace(t_, std::move(parts));
    by_lowest_.resize(items_.size());
    for (Set set = 1; set <= All(); ++set) {
      if (!Spend(4)) return false;
      const auto count = std::popcount(set & ops);
      if (count < t_.limits.min_group || count > t_.limits.max_group || (set & ops) == 0) continue;
      if (!HelpersFit(set & helpers, set) || !IsConvex(set) || !IsConnected(set, set & ops))
        continue;
      int64_t inputs = 0, outputs = 0;
      double moved = 0;
      for (const Passed& passed : passed_) {
        const bool made = passed.maker >= 0 && (set & Bit(static_cast<size_t>(passed.maker)));
        const bool in = !made && !passed.constant && (passed.readers & set);
        const bool out = made && (passed.needed || (passed.readers & ~set));
        inputs += in;
        outputs += out;
        if (in || out) moved += passed.bytes;
      }
      if (inputs > t_.limits.max_inputs || outputs > t_.limits.max_outputs) continue;
      const double units = schedule_->Cheapest(set & ops, &budget_);
      if (budget_ < 0) return false;
      if (!std::isfinite(units)) continue;
      const auto size = static_cast<size_t>(count);
      by_lowest_[static_cast<size_t>(std::countr_zero(set))].push_back(
          {set, ScoreOfGroup(t_, size, t_.group_cost + units + t_.byte_cost * moved), size});
    }
    return true;
  }

  // Computes the best score for each set of remaining operators, ignoring cycles between groups.
  // False: the budget is exhausted.
  bool FindBounds() {
    bounds_.resize(size_t{All()} + 1);
    for (Set left = 1; left <= All(); ++left) {
      const auto k = static_cast<size_t>(std::countr_zero(left));
      Score best = ScoreOfHost(items_[k].host) + bounds_[left & ~Bit(k)];
      for (const Candidate& c : by_lowest_[k]) {
        if (c.set & ~left) continue;
        const Score score = c.score + bounds_[left & ~c.set];
        if (score.BetterThan(best)) best = score;
      }
      bounds_[left] = best;
      if (!Spend(static_cast<int64_t>(by_lowest_[k].size()) / 8)) return false;
    }
    return true;
  }

  // Whether there is a cycle between the chosen sets.
  bool IsCyclic() const {
    std::vector<Set> nodes = chosen_;
    Set grouped = 0;
    for (const Set set : chosen_) grouped |= set;
    for (size_t k = 0; k < items_.size(); ++k)
      if (!(grouped & Bit(k))) nodes.push_back(Bit(k));
    Set done = 0;
    for (bool more = true; more;) {
      more = false;
      for (const Set node : nodes) {
        if (done & node) continue;
        Set needed = 0;
        for (Set rest = node; rest != 0; rest &= rest - 1) {
          const Item& item = items_[static_cast<size_t>(std::countr_zero(rest))];
          needed |= item.direct | item.outside;
        }
        if (needed & ~node & ~done) continue;
        done |= node;
        more = true;
      }
    }
    return done != All();
  }

  // Tries all choices for `left` that may improve on the best one so far.
  void Choose(Set left, const Score& score) {
    if (!Spend(8) || !(score + bounds_[left]).BetterThan(best_)) return;
    if (left == 0) {
      best_ = score;
      best_sets_ = chosen_;
      found_ = true;
      return;
    }
    const auto k = static_cast<size_t>(std::countr_zero(left));
    struct Option {
      Score bound;
      const Candidate* candidate;  // nullptr: stays on the host
    };
    std::vector<Option> options;
    options.push_back({ScoreOfHost(items_[k].host) + bounds_[left & ~Bit(k)], nullptr});
    for (const Candidate& c : by_lowest_[k])
      if (!(c.set & ~left)) options.push_back({c.score + bounds_[left & ~c.set], &c});
    std::stable_sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
      return a.bound.key != b.bound.key ? a.bound.key < b.bound.key : a.bound.cost < b.bound.cost;
    });
    for (const Option& option : options) {
      if (!(score + option.bound).BetterThan(best_)) return;
      if (option.candidate == nullptr) {
        Choose(left & ~Bit(k), score + ScoreOfHost(items_[k].host));
        continue;
      }
      chosen_.push_back(option.candidate->set);
      if (!IsCyclic()) Choose(left & ~option.candidate->set, score + option.candidate->score);
      chosen_.pop_back();
    }
  }

  Group GroupOf(Set set) {
    Group group;
    Set ops = 0;
    for (size_t k = 0; k < items_.size(); ++k) {
      if (!(set & Bit(k))) continue;
      if (items_[k].helper)
        group.helpers.push_back(items_[k].op);
      else
        ops |= Bit(k);
    }
    std::sort(group.helpers.begin(), group.helpers.end());
    for (const auto& [part, unit] : schedule_->Sequence(ops)) {
      group.ops.push_back(items_[part].op);
      group.units.push_back(unit);
    }
    return group;
  }

  const Matches& m_;
  const Graph& g_;
  const Target& t_;
  const Quotient& quotient_;
  WindowSolver::Table<int>& places_;
  WindowSolver::Table<int>& values_;
  WindowSolver::Table<Set>& reached_;
  int64_t& budget_;
  std::vector<Item> items_;  // in the order of the quotient
  std::vector<Passed> passed_;
  std::optional<Schedule> schedule_;
  std::vector<std::vector<Candidate>> by_lowest_;
  std::vector<Score> bounds_;
  std::vector<Set> chosen_, best_sets_;
  Score best_;
  bool found_ = false;
};

bool Score::BetterThan(const Score& other) const {
  if (key != other.key) return key < other.key;
  return cost < other.cost - 1e-9 * std::max(1.0, std::abs(other.cost));
}

Score ScoreOfGroup(const Target& target, size_t ops, double cost) {
  if (target.objective == Objective::kCost) return {0, cost};
  return {1 - Score::kCovered * static_cast<int64_t>(ops), cost};
}

Score ScoreOfHost(double cost) { return {0, cost}; }

WindowSolver::WindowSolver(const Matches& matches, const Quotient& quotient)
    : matches_(matches),
      quotient_(quotient),
      places_(static_cast<size_t>(matches.graph().size())),
      values_(matches.graph().num_values()),
      reached_(static_cast<size_t>(matches.graph().size())) {}

std::optional<std::vector<Group>> WindowSolver::Best(std::span<const OpIndex> ops,
                                                     const Score& present, int64_t* budget) {
  if (ops.empty() || ops.size() > kMostInWindow) return std::nullopt;
  return Window(this, ops, budget).Solve(present);
}

}  // namespace heddle::partition

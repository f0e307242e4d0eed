#include "scheduler/list_scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle {
namespace {

constexpr double kNever = std::numeric_limits<double>::max();

struct Candidate {
  double key;
  uint32_t unit;
  int64_t priority = 0;
};
// Order of a heap: the least priority on top; among equals the largest key, then the lowest unit.
bool LessUrgent(const Candidate& a, const Candidate& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  return a.key != b.key ? a.key < b.key : a.unit > b.unit;
}
// Order of a heap: the smallest key on top.
bool Later(const Candidate& a, const Candidate& b) {
  return a.key != b.key ? a.key > b.key : a.unit > b.unit;
}

template <typename Order>
class Heap {
 public:
  explicit Heap(Order order) : order_(order) {}
  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  const Candidate& top() const { return items_.front(); }
  void Push(Candidate c) {
    items_.push_back(c);
    std::push_heap(items_.begin(), items_.end(), order_);
  }
  Candidate Pop() {
    std::pop_heap(items_.begin(), items_.end(), order_);
    const Candidate c = items_.back();
    items_.pop_back();
    return c;
  }

 private:
  std::vector<Candidate> items_;
  Order order_;
};

// What both rules of assignment keep while they place units.
class State {
 public:
  State(const UnitGraph& units, const LaneOptions& options)
      : g(units.graph),
        units(units),
        hand_over(options.hand_over_ns),
        lanes(static_cast<uint32_t>(options.lanes)),
        finish(g.size, 0),
        free_at(lanes, 0),
        missing(g.size) {
    out.lane.assign(g.size, 0);
    out.walk.reserve(g.size);
    for (uint32_t u = 0; u < g.size; ++u) missing[u] = g.in_degree(u);
  }

  // When all inputs of unit u have arrived at `lane`, in ns.
  double Arrival(uint32_t u, uint32_t lane) const {
    double t = 0;
    for (uint32_t e = g.pred_begin[u]; e < g.pred_begin[u + 1]; ++e) {
      const uint32_t p = g.pred[e];
      t = std::max(t, finish[p] + (out.lane[p] == lane ? 0 : hand_over));
    }
    return t;
  }
  void Place(uint32_t u, uint32_t lane, double start) {
    out.lane[u] = lane;
    out.walk.push_back(u);
    free_at[lane] = finish[u] = start + units.cost_ns[u];
    out.makespan_ns = std::max(out.makespan_ns, finish[u]);
  }
  // Calls fn for each successor whose last predecessor has just been placed.
  template <typename Fn>
  void Release(uint32_t u, Fn&& fn) {
    for (uint32_t e = g.succ_begin[u]; e < g.succ_begin[u + 1]; ++e)
      if (--missing[g.succ[e]] == 0) fn(g.succ[e]);
  }

  const StaticGraph& g;
  const UnitGraph& units;
  const double hand_over;
  const uint32_t lanes;
  std::vector<double> finish, free_at;
  std::vector<uint32_t> missing;
  LaneAssignment out;
};

// The lane that can start unit u first; among equals the one that ran its latest predecessor.
uint32_t EarliestLane(const State& s, uint32_t u, std::vector<double>* own, double* start) {
  // Inputs from a lane arrive at every other lane `hand_over` later, so only lanes that ran a
  // predecessor differ from the rest.
  double first = 0, second = 0;  // latest arrival from another lane, and from any but that lane
  uint32_t first_lane = ~0u, latest_lane = 0;
  double latest = -1;
  for (uint32_t e = s.g.pred_begin[u]; e < s.g.pred_begin[u + 1]; ++e) {
    const uint32_t p = s.g.pred[e], lane = s.out.lane[p];
    (*own)[lane] = std::max((*own)[lane], s.finish[p]);
    if (s.finish[p] > latest) latest = s.finish[p], latest_lane = lane;
    const double away = s.finish[p] + s.hand_over;
    if (lane == first_lane) {
      first = std::max(first, away);
    } else if (away > first) {
      second = first;
      first = away;
      first_lane = lane;
    } else {
      second = std::max(second, away);
    }
  }
  auto arrival = [&](uint32_t lane) {
    return std::max({s.free_at[lane], (*own)[lane], lane == first_lane ? second : first});
  };
  uint32_t best = latest_lane;
  *start = arrival(best);
  for (uint32_t lane = 0; lane < s.lanes; ++lane) {
    const double t = arrival(lane);
    if (t < *start) *start = t, best = lane;
  }
  for (uint32_t e = s.g.pred_begin[u]; e < s.g.pred_begin[u + 1]; ++e)
    (*own)[s.out.lane[s.g.pred[e]]] = 0;
  return best;
}

// Simulates the lanes in time: which lane is free when, and which units are ready at home there.
class HomeScheduler {
 public:
  HomeScheduler(const UnitGraph& units, const LaneOptions& options)
      : s_(units, options),
        in_order_(options.rule == LaneRule::kInOrder),
        soon_(Later),
        home_(units.size(), 0) {
    ready_.assign(s_.lanes, Heap<decltype(&LessUrgent)>(LessUrgent));
    lanes_by_time_.Push({0, 0});
    for (uint32_t l = 1; l < s_.lanes; ++l) lanes_by_time_.Push({0, l});
    SpreadRoots();
  }

  LaneAssignment Run() {
    while (s_.out.walk.size() < s_.g.size) {
      const Candidate lane = lanes_by_time_.Pop();
      const double now = lane.key;
      while (!soon_.empty() && soon_.top().key <= now) MakeReady(soon_.Pop().unit);
      const uint32_t from = Choose(lane.unit, now);
      if (from == kNobody) {
        lanes_by_time_.Push({NextChange(now), lane.unit});
        continue;
      }
      const uint32_t u = ready_[from].Pop().unit;
      --ready_count_;
      s_.Place(u, lane.unit, std::max(now, s_.Arrival(u, lane.unit)));
      lanes_by_time_.Push({s_.free_at[lane.unit], lane.unit});
      released_.clear();
      s_.Release(u, [&](uint32_t v) { released_.push_back(v); });
      for (uint32_t v : released_) Announce(v);
      if (released_.size() >= kManyPerLane * s_.lanes) SpreadReleased(u);
    }
    return std::move(s_.out);
  }

 private:
  static constexpr uint32_t kNobody = ~0u;
  static constexpr size_t kManyPerLane = 4;

  void SpreadRoots() {
    uint32_t roots = 0, k = 0;
    for (uint32_t u = 0; u < s_.g.size; ++u) roots += s_.missing[u] == 0;
    for (uint32_t u = 0; u < s_.g.size; ++u) {
      if (s_.missing[u] != 0) continue;
      home_[u] = static_cast<uint32_t>(uint64_t{k++} * s_.lanes / roots);
      MakeReady(u);
    }
  }
  void MakeReady(uint32_t u) {
    ready_[home_[u]].Push({in_order_ ? 0 : s_.units.bottom_level_ns[u], u, s_.g.PriorityOf(u)});
    ++ready_count_;
  }
  // All predecessors of v are placed: it becomes ready when the latest one ends.
  void Announce(uint32_t v) {
    uint32_t latest = s_.g.pred[s_.g.pred_begin[v]];
    for (uint32_t e = s_.g.pred_begin[v]; e < s_.g.pred_begin[v + 1]; ++e)
      if (s_.finish[s_.g.pred[e]] > s_.finish[latest]) latest = s_.g.pred[e];
    home_[v] = s_.out.lane[latest];
    soon_.Push({s_.finish[latest], v});
  }

  // Many units that wait for `u` alone would all be at home on its lane. Each lane gets a run of
  // neighbours instead, so that lanes do not write to adjacent cache lines in turns.
  void SpreadReleased(uint32_t u) {
    auto weight = [&](uint32_t v) { return s_.units.cost_ns[v] + 1e-3; };
    double all = 0, before = 0;
    for (uint32_t v : released_) all += weight(v);
    for (uint32_t v : released_) {
      const double share = (before + 0.5 * weight(v)) / all;
      before += weight(v);
      if (s_.g.in_degree(v) > 1) continue;
      const auto part = std::min(static_cast<uint32_t>(share * s_.lanes), s_.lanes - 1);
      home_[v] = (s_.out.lane[u] + part) % s_.lanes;
    }
  }

  // The least priority among the ready units.
  int64_t FirstPriority() const {
    int64_t first = std::numeric_limits<int64_t>::max();
    for (const auto& ready : ready_)
      if (!ready.empty()) first = std::min(first, ready.top().priority);
    return first;
  }

  // The lane from whose ready units `lane` takes one at `now`: itself, unless another lane's unit
  // has priority, or its earlier start is worth the hand-over.
  uint32_t Choose(uint32_t lane, double now) {
    if (ready_count_ == 0) return kNobody;
    const int64_t first = FirstPriority();
    const auto offers = [&](uint32_t l) {
      return !ready_[l].empty() && ready_[l].top().priority == first;
    };
    uint32_t from = offers(lane) ? lane : kNobody;
    for (uint32_t o = 0; o < s_.lanes; ++o) {
      if (o == lane || !offers(o)) continue;
      const Candidate& theirs = ready_[o].top();
      const bool waits_there = ready_[o].size() > 1;
      // How much earlier the unit would start here, in ns.
      const double gain = s_.free_at[o] - std::max(now, s_.Arrival(theirs.unit, lane));
      if (from == kNobody) {
        if (gain > 0 || waits_there) from = o;
      } else if (!in_order_ && gain > s_.hand_over &&
                 theirs.key > ready_[from].top().key + kUrgency * s_.hand_over) {
        from = o;
      }
    }
    if (from != kNobody || !soon_.empty()) return from;
    for (double t : s_.free_at)
      if (t > now) return kNobody;
    for (uint32_t o = 0; o < s_.lanes; ++o)  // every lane is free: waiting changes nothing
      if (offers(o)) return o;
    return kNobody;
  }
  // The next moment after `now` at which a lane that found no unit may find one.
  double NextChange(double now) const {
    double next = soon_.empty() ? kNever : soon_.top().key;
    for (double t : s_.free_at)
      if (t > now) next = std::min(next, t);
    return std::nextafter(std::max(next, now), kNever);
  }

  static constexpr double kUrgency = 4;
  State s_;
  const bool in_order_;
  std::vector<Heap<decltype(&LessUrgent)>> ready_;  // per home lane, by urgency
  Heap<decltype(&Later)> soon_;                     // by the time when they become ready
  Heap<decltype(&Later)> lanes_by_time_{Later};
  std::vector<uint32_t> home_;
  std::vector<uint32_t> released_;  // by the unit just placed
  size_t ready_count_ = 0;
};

}  // namespace

LaneAssignment AssignByPath(const UnitGraph& units, const LaneOptions& options) {
  State s(units, options);
  std::vector<double> own(s.lanes, 0);
  Heap<decltype(&LessUrgent)> ready(LessUrgent);
  auto push = [&](uint32_t u) { ready.Push({units.bottom_level_ns[u], u}); };
  for (uint32_t u = 0; u < s.g.size; ++u)
    if (s.missing[u] == 0) push(u);
  while (!ready.empty()) {
    const uint32_t u = ready.Pop().unit;
    double start = 0;
    const uint32_t lane = EarliestLane(s, u, &own, &start);
    s.Place(u, lane, start);
    s.Release(u, push);
  }
  return std::move(s.out);
}

LaneAssignment AssignByHome(const UnitGraph& units, const LaneOptions& options) {
  return HomeScheduler(units, options).Run();
}

}  // namespace heddle

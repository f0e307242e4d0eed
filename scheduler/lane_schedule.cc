#include "scheduler/lane_schedule.h"

#include <algorithm>

#include "scheduler/list_scheduler.h"

namespace heddle {
namespace {

constexpr uint32_t kNone = ~0u;

// Turns an assignment of units into lanes of segments.
class Emitter {
 public:
  Emitter(const UnitGraph& units, const LaneAssignment& assigned, uint32_t lanes)
      : u_(units), a_(assigned), lanes_(lanes), known_(size_t{lanes} * lanes, 0) {}

  LaneSchedule Run() {
    out_.lanes = static_cast<int>(lanes_);
    PlaceNodes();
    FindWaits();
    MakeSegments();
    MakeClocks();
    return std::move(out_);
  }

 private:
  // Writes each lane's nodes in a row, and for each unit how many nodes of its lane end with it.
  void PlaceNodes() {
    const uint32_t n = u_.size();
    out_.lane_begin.assign(lanes_ + 1, 0);
    for (uint32_t u = 0; u < n; ++u) out_.lane_begin[a_.lane[u] + 1] += Size(u);
    for (uint32_t l = 0; l < lanes_; ++l) out_.lane_begin[l + 1] += out_.lane_begin[l];
    out_.order.resize(u_.nodes.size());
    out_.walk.reserve(u_.nodes.size());
    end_.resize(n);
    placed_.resize(n);
    uint32_t placed = 0;
    lane_units_.resize(lanes_);
    std::vector<uint32_t> at(out_.lane_begin.begin(), out_.lane_begin.end() - 1);
    for (uint32_t u : a_.walk) {
      const uint32_t lane = a_.lane[u];
      lane_units_[lane].push_back(u);
      placed_[u] = placed++;
      for (uint32_t k = u_.node_begin[u]; k < u_.node_begin[u + 1]; ++k) {
        out_.order[at[lane]++] = u_.nodes[k];
        out_.walk.push_back(u_.nodes[k]);
      }
      end_[u] = at[lane] - out_.lane_begin[lane];
    }
  }
  uint32_t Size(uint32_t u) const { return u_.node_begin[u + 1] - u_.node_begin[u]; }

  // Finds, for each unit and other lane, the last predecessor there, unless it is known to be
  // finished.
  void FindWaits() {
    const StaticGraph& g = u_.graph;
    wait_begin_.assign(g.size, 0);
    wait_end_.assign(g.size, 0);
    signals_.assign(g.size, 0);
    snapshot_.assign(g.size, kNone);
    std::vector<uint32_t> last(lanes_, kNone);  // per lane, the last unit that must be waited for
    std::vector<uint32_t> touched;
    for (uint32_t u : a_.walk) {
      const uint32_t lane = a_.lane[u];
      uint32_t* known = &known_[size_t{lane} * lanes_];
      touched.clear();
      for (uint32_t e = g.pred_begin[u]; e < g.pred_begin[u + 1]; ++e) {
        const uint32_t p = g.pred[e], from = a_.lane[p];
        if (from == lane) continue;
        if (last[from] == kNone) touched.push_back(from);
        if (last[from] == kNone || end_[p] > end_[last[from]]) last[from] = p;
      }
      wait_begin_[u] = static_cast<uint32_t>(waits_.size());
      // The latest predecessor first: its clock may show that the others are finished.
      std::sort(touched.begin(), touched.end(),
                [&](uint32_t a, uint32_t b) { return placed_[last[a]] > placed_[last[b]]; });
      for (uint32_t from : touched) {
        const uint32_t p = last[from];
        last[from] = kNone;
        if (end_[p] <= known[from]) continue;
        signals_[p] = 1;
        waits_.push_back(p);
        const uint32_t* theirs = &snapshots_[size_t{snapshot_[p]} * lanes_];
        for (uint32_t l = 0; l < lanes_; ++l) known[l] = std::max(known[l], theirs[l]);
      }
      wait_end_[u] = static_cast<uint32_t>(waits_.size());
      if (wait_end_[u] != wait_begin_[u]) Note(u, known);
      known[lane] = end_[u];
      if (IsWaitedFor(u)) {
        snapshot_[u] = static_cast<uint32_t>(snapshots_.size() / lanes_);
        snapshots_.insert(snapshots_.end(), known, known + lanes_);
      }
    }
  }
  bool IsWaitedFor(uint32_t u) const {
    const StaticGraph& g = u_.graph;
    for (uint32_t e = g.succ_begin[u]; e < g.succ_begin[u + 1]; ++e)
      if (a_.lane[g.succ[e]] != a_.lane[u]) return true;
    return false;
  }
  // Records what the lane of unit `u` knows from here on: finished nodes of each lane.
  void Note(uint32_t u, const uint32_t* known) {
    noted_.push_back({a_.lane[u], out_.lane_begin[a_.lane[u]] + end_[u] - Size(u),
                      static_cast<uint32_t>(noted_rows_.size() / lanes_)});
    noted_rows_.insert(noted_rows_.end(), known, known + lanes_);
  }

  void MakeSegments() {
    std::vector<uint32_t> signal(u_.size(), 0);
    for (const auto& units : lane_units_) {
      uint32_t count = 0;
      for (uint32_t u : units)
        if (signals_[u]) signal[u] = ++count;
    }
    out_.segment_begin.push_back(0);
    for (uint32_t l = 0; l < lanes_; ++l) {
      bool open = false;  // the last segment may be extended
      uint32_t at = out_.lane_begin[l];
      for (uint32_t u : lane_units_[l]) {
        const bool waits = wait_begin_[u] != wait_end_[u];
        if (waits || !open) {
          const auto first = static_cast<uint32_t>(out_.waits.size());
          for (uint32_t k = wait_begin_[u]; k < wait_end_[u]; ++k)
            out_.waits.push_back({a_.lane[waits_[k]], signal[waits_[k]]});
          out_.segments.push_back({at, at, first, static_cast<uint32_t>(out_.waits.size()), 0});
        }
        at += Size(u);
        out_.segments.back().end = at;
        out_.segments.back().signal = signal[u];
        open = signal[u] == 0;
      }
      out_.segment_begin.push_back(static_cast<uint32_t>(out_.segments.size()));
    }
  }

  // Sorts the notes, which were made in the order of the walk, by lane.
  void MakeClocks() {
    out_.clock_begin.assign(lanes_ + 1, 0);
    for (const Noted& n : noted_) ++out_.clock_begin[n.lane + 1];
    for (uint32_t l = 0; l < lanes_; ++l) out_.clock_begin[l + 1] += out_.clock_begin[l];
    out_.clock_positions.resize(noted_.size());
    out_.clocks.resize(noted_rows_.size());
    std::vector<uint32_t> at(out_.clock_begin.begin(), out_.clock_begin.end() - 1);
    for (const Noted& n : noted_) {
      const uint32_t k = at[n.lane]++;
      out_.clock_positions[k] = n.position;
      std::copy_n(&noted_rows_[size_t{n.row} * lanes_], lanes_, &out_.clocks[size_t{k} * lanes_]);
    }
  }

  struct Noted {
    uint32_t lane, position, row;
  };
  const UnitGraph& u_;
  const LaneAssignment& a_;
  const uint32_t lanes_;
  LaneSchedule out_;
  std::vector<uint32_t> end_;     // per unit: the number of its lane's nodes up to its end
  std::vector<uint32_t> placed_;  // per unit: its position in the walk
  std::vector<std::vector<uint32_t>> lane_units_;
  std::vector<uint32_t> waits_, wait_begin_, wait_end_;  // units waited for, per unit
  std::vector<char> signals_;
  std::vector<uint32_t> snapshot_, snapshots_;  // per unit that others wait for: what it knows
  std::vector<uint32_t> known_;  // [a * lanes + b]: nodes of lane b that lane a knows are finished
  std::vector<Noted> noted_;
  std::vector<uint32_t> noted_rows_;
};

}  // namespace

LaneSchedule ScheduleLanes(const UnitGraph& units, const LaneOptions& options) {
  // The rule "by path" may give a lane to a unit that becomes ready later, so a unit with priority
  // would go first only among the units looked at, not in time.
  const bool by_path = options.rule == LaneRule::kByPath && units.graph.priority.empty();
  const LaneAssignment assigned =
      by_path ? AssignByPath(units, options) : AssignByHome(units, options);
  LaneSchedule s = Emitter(units, assigned, static_cast<uint32_t>(options.lanes)).Run();
  s.serial_ns = units.serial_ns;
  s.path_ns = units.path_ns;
  s.predicted_ns = assigned.makespan_ns + (options.lanes > 1 ? options.start_ns : 0);
  return s;
}

namespace {

constexpr uint32_t kNowhere = ~0u;

// Checks that `walk` and `order` name each node once, that in the walk every node comes after its
// predecessors, and that the nodes of a lane have the lane's order there.
bool IsOrder(const StaticGraph& graph, const GivenLanes& given) {
  const uint32_t n = graph.size;
  if (given.order.size() != n || given.walk.size() != n || given.lanes == 0) return false;
  std::vector<uint32_t> at(n, kNowhere), seen(n, 0);
  for (uint32_t k = 0; k < n; ++k) {
    if (given.walk[k] >= n || at[given.walk[k]] != kNowhere) return false;
    at[given.walk[k]] = k;
  }
  for (uint32_t k = 0; k < n; ++k) {
    if (given.order[k] >= n || seen[given.order[k]]++ > 0 || given.lane[k] >= given.lanes)
      return false;
    if (k == 0) continue;
    if (given.lane[k] < given.lane[k - 1] || given.segment[k] < given.segment[k - 1]) return false;
    if (given.lane[k] == given.lane[k - 1] && at[given.order[k]] < at[given.order[k - 1]])
      return false;
    if (given.lane[k] != given.lane[k - 1] && given.segment[k] == given.segment[k - 1])
      return false;
  }
  for (uint32_t v = 0; v < n; ++v)
    for (uint32_t e = graph.pred_begin[v]; e < graph.pred_begin[v + 1]; ++e)
      if (at[graph.pred[e]] > at[v]) return false;
  return true;
}

// Makes each segment a unit, numbered by the order in which the walk completes them. The unit's
// last node alone is waited for.
UnitGraph UnitsOf(const StaticGraph& graph, const GivenLanes& given,
                  std::vector<uint32_t>* lane_of_unit) {
  const size_t segments = given.segment.empty() ? 0 : given.segment.back() + 1;
  std::vector<uint32_t> position(graph.size), unit_of(graph.size);
  for (uint32_t k = 0; k < graph.size; ++k) position[given.order[k]] = k;
  const auto segment_of = [&](uint32_t v) { return given.segment[position[v]]; };
  std::vector<uint32_t> left(segments, 0), unit_of_segment(segments, kNowhere);
  for (uint32_t segment : given.segment) ++left[segment];
  for (uint32_t v : given.walk) {
    if (--left[segment_of(v)] > 0) continue;
    unit_of_segment[segment_of(v)] = static_cast<uint32_t>(lane_of_unit->size());
    lane_of_unit->push_back(given.lane[position[v]]);
  }
  std::vector<std::vector<uint32_t>> members(lane_of_unit->size());
  for (uint32_t v : given.walk) {
    unit_of[v] = unit_of_segment[segment_of(v)];
    members[unit_of[v]].push_back(v);
  }
  UnitGraph units;
  units.graph.size = static_cast<uint32_t>(members.size());
  units.graph.pred_begin.push_back(0);
  units.node_begin.push_back(0);
  for (uint32_t u = 0; u < members.size(); ++u) {
    std::vector<uint32_t> preds;
    for (uint32_t v : members[u])
      for (uint32_t e = graph.pred_begin[v]; e < graph.pred_begin[v + 1]; ++e)
        if (unit_of[graph.pred[e]] != u) preds.push_back(unit_of[graph.pred[e]]);
    std::sort(preds.begin(), preds.end());
    preds.erase(std::unique(preds.begin(), preds.end()), preds.end());
    units.graph.pred.insert(units.graph.pred.end(), preds.begin(), preds.end());
    units.graph.pred_begin.push_back(static_cast<uint32_t>(units.graph.pred.size()));
    units.nodes.insert(units.nodes.end(), members[u].begin(), members[u].end());
    units.node_begin.push_back(static_cast<uint32_t>(units.nodes.size()));
  }
  return units;
}

}  // namespace

std::optional<LaneSchedule> RestoreLanes(const StaticGraph& graph, const GivenLanes& given) {
  if (!IsOrder(graph, given)) return std::nullopt;
  LaneAssignment assigned;
  UnitGraph units = UnitsOf(graph, given, &assigned.lane);
  for (uint32_t u = 0; u < units.size(); ++u) {
    assigned.walk.push_back(u);
    for (uint32_t e = units.graph.pred_begin[u]; e < units.graph.pred_begin[u + 1]; ++e)
      if (units.graph.pred[e] > u) return std::nullopt;  // segments that wait for each other
  }
  CompleteSuccessors(&units.graph);
  LaneSchedule schedule = Emitter(units, assigned, given.lanes).Run();
  schedule.walk = given.walk;
  return schedule;
}

}  // namespace heddle

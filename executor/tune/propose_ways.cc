#include "executor/tune/propose_ways.h"

#include <utility>

#include "scheduler/propose_lanes.h"
#include "scheduler/simulate_lanes.h"

namespace heddle {
namespace {

// Finds the steps during which all other lanes are idle anyway, and which gain from using their
// threads. `mixed` becomes the costs of such a plan.
std::vector<bool> FindWide(const LaneSchedule& lanes, const RunPolicy::Costs& costs,
                           double hand_over_ns, std::vector<float>* mixed) {
  constexpr double kTolerance = 0.15, kGain = 0.8;
  constexpr float kLeastNs = 20000;  // waking helpers costs some microseconds
  LaneTimes times;
  SimulateLanes(lanes, costs.narrow_ns, hand_over_ns, &times);
  const std::vector<bool> lonely = FindLonely(lanes, times, kTolerance);
  *mixed = costs.narrow_ns;
  std::vector<bool> wide(lonely.size(), false);
  bool any = false;
  for (size_t p = 0; p < lonely.size(); ++p) {
    const uint32_t v = lanes.order[p];
    if (!lonely[p] || costs.narrow_ns[v] < kLeastNs ||
        costs.wide_ns[v] > kGain * costs.narrow_ns[v])
      continue;
    wide[v] = any = true;
    (*mixed)[v] = costs.wide_ns[v];
  }
  return any ? wide : std::vector<bool>();
}

}  // namespace

std::vector<LaneWay> ProposeLaneWays(const StaticGraph& graph, const RunPolicy::Costs& costs,
                                     int threads, double hand_over_ns) {
  // Prices of an edge between lanes, in hand-overs of a signal: the signal is followed by data, and
  // by memory that the other lane had in its cache.
  constexpr double kPrices[] = {2, 6};
  constexpr size_t kLanesPerPrice = 2;
  constexpr double kPromising = 0.97;  // of the plain way's time, as predicted
  std::vector<LaneWay> ways;
  for (const double price : kPrices) {
    const double edge_ns = price * hand_over_ns;
    for (LaneSchedule& s : ProposeLanes(graph, costs.narrow_ns, threads, edge_ns, kLanesPerPrice)) {
      std::vector<float> mixed;
      std::vector<bool> wide = FindWide(s, costs, edge_ns, &mixed);
      s.predicted_ns = SimulateLanes(s, mixed, edge_ns);
      if (s.predicted_ns <= kPromising * costs.plain_ns)
        ways.push_back({std::move(s), std::move(wide)});
    }
  }
  return ways;
}

bool CanAffordQueue(const RunPolicy::Costs& costs) {
  constexpr double kStepNs = 2000;
  double work_ns = 0;
  for (const float ns : costs.narrow_ns) work_ns += ns;
  return work_ns > kStepNs * static_cast<double>(costs.narrow_ns.size());
}

}  // namespace heddle

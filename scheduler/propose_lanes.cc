#include "scheduler/propose_lanes.h"

#include <algorithm>
#include <utility>

namespace heddle {
namespace {

constexpr int kLanesByPath = 8;
constexpr double kWorthTrying = 0.97;  // of the plain loop's time, as predicted

}  // namespace

std::vector<LaneSchedule> ProposeLanes(const StaticGraph& graph, std::span<const float> cost_ns,
                                       int threads, double hand_over_ns, size_t at_most) {
  std::vector<LaneSchedule> found;
  if (threads < 2 || graph.size < 2) return found;
  const auto hand_over = static_cast<float>(hand_over_ns);
  constexpr float kGroups[] = {4, 0, 10};  // in hand-overs
  for (float group : kGroups) {
    const UnitGraph units = FormUnits(graph, cost_ns, group * hand_over);
    LaneOptions options{.lanes = threads, .hand_over_ns = hand_over};
    if (units.path_ns + options.start_ns > kWorthTrying * units.serial_ns) continue;
    for (LaneRule rule : {LaneRule::kInOrder, LaneRule::kByHome, LaneRule::kByPath}) {
      // By path makes many more waits, and its schedule is better, if at all, with many lanes.
      if (rule == LaneRule::kByPath && threads < kLanesByPath) continue;
      options.rule = rule;
      LaneSchedule s = ScheduleLanes(units, options);
      if (s.predicted_ns < kWorthTrying * s.serial_ns) found.push_back(std::move(s));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const LaneSchedule& a, const LaneSchedule& b) {
    return a.predicted_ns < b.predicted_ns;
  });
  if (found.size() > at_most) found.resize(at_most);
  return found;
}

}  // namespace heddle

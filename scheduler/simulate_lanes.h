// The time of a lane schedule when every node costs what it is said to, and every wait that is
// not yet fulfilled ends `hand_over_ns` after the signal. For machines that are not at hand, and
// for checking predictions.
#pragma once

#include <span>
#include <vector>

#include "scheduler/lane_schedule.h"

namespace heddle {

// When each node starts and ends, by position in LaneSchedule::order; in ns.
struct LaneTimes {
  std::vector<double> start, end;
};

// `cost_ns` per node. Returns the time the last lane ends, in ns. O(nodes + waits).
double SimulateLanes(const LaneSchedule& schedule, std::span<const float> cost_ns,
                     double hand_over_ns, LaneTimes* times = nullptr);

// Nodes during which, in these times, all other lanes are idle but for `tolerance` of the node's
// time: what they could help with. By position.
std::vector<bool> FindLonely(const LaneSchedule& schedule, const LaneTimes& times,
                             double tolerance);

}  // namespace heddle

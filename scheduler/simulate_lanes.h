// Simulates a lane schedule in which every node takes its given cost and every wait that is not yet
// fulfilled ends `hand_over_ns` after the signal. For numbers of threads that the machine lacks,
// and for checking predictions.
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

// Finds the nodes, by position in `order`, during which all other lanes are idle except for at most
// `tolerance` of the node's time: the nodes that other threads could help with.
std::vector<bool> FindLonely(const LaneSchedule& schedule, const LaneTimes& times,
                             double tolerance);

}  // namespace heddle

// Which ways of running a graph side by side are worth trying, from the costs that RunPolicy has
// measured.
//
// Threads: pure functions.
#pragma once

#include <vector>

#include "executor/tune/run_policy.h"
#include "scheduler/lane_schedule.h"
#include "scheduler/static_graph.h"

namespace heddle {

struct LaneWay {
  LaneSchedule lanes;
  // Steps whose kernels may use the other lanes' threads, by node; empty: none.
  std::vector<bool> wide;
};

// `hand_over_ns`: HostPool::HandOverNs.
std::vector<LaneWay> ProposeLaneWays(const StaticGraph& graph, const RunPolicy::Costs& costs,
                                     int threads, double hand_over_ns);

// Can the steps, on average, afford a queue?
bool CanAffordQueue(const RunPolicy::Costs& costs);

}  // namespace heddle

// Chooses ways of running a graph on several threads that are worth trying, by the costs that
// RunPolicy has measured.
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
  // Per node: its kernel may use the other lanes' threads; empty: none.
  std::vector<bool> wide;
};

// `hand_over_ns`: HostPool::HandOverNs.
std::vector<LaneWay> ProposeLaneWays(const StaticGraph& graph, const RunPolicy::Costs& costs,
                                     int threads, double hand_over_ns);

// Whether the steps are long enough, on average, for the overhead of a queue.
bool CanAffordQueue(const RunPolicy::Costs& costs);

}  // namespace heddle

// Chooses lane schedules that are worth trying for a graph whose costs are known.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "scheduler/lane_schedule.h"
#include "scheduler/static_graph.h"

namespace heddle {

// Schedules that may be worth trying for a graph with these costs, the most promising first; empty
// when one thread is expected to be as fast. `hand_over_ns` is the price of an edge between lanes:
// HostPool::HandOverNs for the signal, and more where data follows it.
std::vector<LaneSchedule> ProposeLanes(const StaticGraph& graph, std::span<const float> cost_ns,
                                       int threads, double hand_over_ns, size_t at_most);

}  // namespace heddle

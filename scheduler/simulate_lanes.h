// How long a lane schedule takes when every node costs what it is said to, and every wait that is not
// yet fulfilled ends `hand_over_ns` after the signal. For machines that are not at hand, and for
// checking predictions.
#pragma once

#include <span>

#include "scheduler/lane_schedule.h"

namespace heddle {

// `cost_ns` per node. Returns the time the last lane ends, in ns. O(nodes + waits).
double SimulateLanes(const LaneSchedule& schedule, std::span<const float> cost_ns,
                     double hand_over_ns);

}  // namespace heddle

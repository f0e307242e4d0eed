// List scheduling: a lane and a start time for each unit. See lane_schedule.h for the options.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/lane_schedule.h"

namespace heddle {

struct LaneAssignment {
  std::vector<uint32_t> lane;  // per unit
  std::vector<uint32_t> walk;  // units in the order they were placed: valid for one thread, and in
                               // it each lane's units are in the lane's order
  double makespan_ns = 0;
};

// Takes the ready unit with the longest remaining path, and the lane where it can start first.
// Precondition: the units have no priorities.
LaneAssignment AssignByPath(const UnitGraph& units, const LaneOptions& options);

// Follows the lanes through time: of the units that are ready then, those of least priority, the
// lane that is free first takes one at home with it (whose
// latest predecessor it ran), or somebody else's when it has none or that one is clearly more
// urgent. Among its own it takes the one with the longest remaining path or, with kInOrder, the one
// that comes first in the program: a lane then goes through memory as the program does, which pays
// where the program's data is larger than the caches.
LaneAssignment AssignByHome(const UnitGraph& units, const LaneOptions& options);

}  // namespace heddle

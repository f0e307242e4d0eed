// List scheduling: a lane and a start time for each unit. See lane_schedule.h for the options.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/lane_schedule.h"

namespace heddle {

struct LaneAssignment {
  std::vector<uint32_t> lane;  // per unit
  // Units in the order in which they were placed: valid for one thread, and in each lane the lane's
  // own order.
  std::vector<uint32_t> walk;
  double makespan_ns = 0;
};

// Takes the ready unit with the longest remaining path, and the lane where it can start first.
// Precondition: the units have no priorities.
LaneAssignment AssignByPath(const UnitGraph& units, const LaneOptions& options);

// Simulates the lanes in time. The lane that is free first takes, among the ready units of least
// priority, one of its own (whose latest predecessor it ran); it takes another lane's when it has
// none or when that one is clearly more urgent. Among its own it takes the one with the longest
// remaining path or, with kInOrder, the first in the program: a lane then goes through memory as
// the program does, which pays where the program's data is larger than the caches.
LaneAssignment AssignByHome(const UnitGraph& units, const LaneOptions& options);

}  // namespace heddle

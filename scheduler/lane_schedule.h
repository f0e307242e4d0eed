// Static lanes: which thread executes which nodes, and in which order, decided before the run.
//
// A lane is the work of one thread: segments of nodes, one after another. Before a segment a lane
// may wait until another lane has come so far; after a segment it may signal how far it has come.
// Nothing else crosses lanes: no queue, no counter per node. A wait that an earlier wait of the
// same lane implies, directly or through other lanes, is left out (vector clocks, as in Fidge 1988
// and Mattern 1989). How lanes execute: scheduler/lane_run.h.
//
// A LaneSchedule is immutable once made; any number of runs may share it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/units.h"

namespace heddle {

struct LaneWait {
  uint32_t lane;    // the lane that is waited for
  uint32_t signal;  // its progress must have reached this number
};

struct LaneSegment {
  uint32_t begin, end;            // positions in LaneSchedule::order
  uint32_t wait_begin, wait_end;  // in LaneSchedule::waits: all needed before the segment starts
  uint32_t signal;                // the lane's progress after it; 0: no lane waits for it
};

struct LaneSchedule {
  int lanes = 0;
  std::vector<uint32_t> order;       // nodes, lane after lane
  std::vector<uint32_t> lane_begin;  // in order, per lane, + end
  std::vector<LaneSegment> segments;
  std::vector<uint32_t> segment_begin;  // in segments, per lane, + end
  std::vector<LaneWait> waits;
  std::vector<uint32_t> walk;  // all nodes in an order that one thread can follow
  double serial_ns = 0;        // sum of all costs
  double path_ns = 0;          // longest path: no number of lanes is faster
  double predicted_ns = 0;     // expected time, hand-overs included

  // Vector clocks: for a position in `order`, how many nodes of each lane are certainly finished
  // when the node there starts. Only positions where a clock changes are kept.
  std::vector<uint32_t> clock_positions;  // ascending positions in order, lane after lane
  std::vector<uint32_t> clock_begin;      // in clock_positions, per lane, + end
  std::vector<uint32_t> clocks;
};

// The rule by which a lane takes its next unit; see list_scheduler.h.
enum class LaneRule { kByPath, kByHome, kInOrder };

struct LaneOptions {
  int lanes = 2;             // at least 1
  float hand_over_ns = 150;  // between the end of a unit and the start of one that waits for it
  float start_ns = 500;      // starting the other lanes and waiting for the last one
  LaneRule rule = LaneRule::kByHome;
};

// List scheduling of the units by longest remaining path (HEFT's rule: Topcuoglu, Hariri and Wu
// 2002), with `hand_over_ns` on edges between lanes. Units with priorities are never taken by path.
// O((units + edges) log units + units * lanes).
LaneSchedule ScheduleLanes(const UnitGraph& units, const LaneOptions& options);

// The parts of a LaneSchedule that a plan file keeps.
struct GivenLanes {
  uint32_t lanes = 0;
  std::vector<uint32_t> order;  // nodes, lane after lane
  // Parallel to `order`; segments are numbered in ascending order.
  std::vector<uint32_t> lane, segment;
  std::vector<uint32_t> walk;  // LaneSchedule::walk
};
// Makes the schedule anew, with costs of 0, for the same graph or one with further edges that
// `given` respects. Nullopt where `given` is not a valid order of the graph.
std::optional<LaneSchedule> RestoreLanes(const StaticGraph& graph, const GivenLanes& given);

}  // namespace heddle

// PlanStats: numbers that describe a plan. A plain value.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace heddle {

struct PlanStats {
  int instructions = 0;          // executed in every run (views and constants are not)
  int tasks = 0;                 // units of scheduling
  bool parallel = false;         // whether instructions may execute at the same time
  int lanes = 1;                 // threads whose shares are planned ahead
  bool static_shapes = false;    // whether every temporary has its place before the run
  size_t arena_bytes = 0;        // one block for all static temporaries of a run
  size_t arena_bound_bytes = 0;  // peak of live bytes, which no plan can undercut
  int memory_edges = 0;          // added waits that let temporaries share memory (Reuse::kEdges)
  // Pairs of instructions of which one waits for the other, as found, and without those that others
  // imply; 0 if the schedule does not use them.
  size_t dependencies_found = 0, dependencies = 0;
  // With a device: its instructions, copies between it and the host, events, and waits for events.
  int device_instructions = 0, copies = 0, events = 0, event_waits = 0;
  int peer_copies = 0;  // copies from one device to another
  int host_tasks = 0;   // with a device: operators of the host that any thread may execute
  // The size of the device's block for static temporaries, and the size they would need if one
  // instruction ran after another.
  size_t device_arena_bytes = 0, device_serial_bytes = 0;
  std::string no_capture;  // with a device: why its part of a run is not captured; empty: it is
  double build_ms = 0;
  // The analyses that made the plan, in order.
  struct Stage {
    std::string name;
    double ms = 0;
  };
  std::vector<Stage> stages;
};

}  // namespace heddle

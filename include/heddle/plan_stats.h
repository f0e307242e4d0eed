// PlanStats: the figures of a plan. A plain value.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace heddle {

struct PlanStats {
  int instructions = 0;          // that run on every call (views and constants cost none)
  int tasks = 0;                 // units of scheduling
  bool parallel = false;         // instructions go side by side
  int lanes = 1;                 // threads whose instructions are decided ahead of time
  bool static_shapes = false;    // every temporary has its place before the run
  size_t arena_bytes = 0;        // one block for all static temporaries of a run
  size_t arena_bound_bytes = 0;  // peak of live bytes: no plan can need less
  int memory_edges = 0;  // waits that were added so that temporaries share memory (Reuse::kEdges)
  // Pairs of instructions of which one waits for the other, as found and without those that others
  // imply; counted where the schedule asked for them.
  size_t dependencies_found = 0, dependencies = 0;
  // With a device: instructions that run there, copies between it and the host, events and waits.
  int device_instructions = 0, copies = 0, events = 0, event_waits = 0;
  int peer_copies = 0;  // of the copies, those from one device to another
  int host_tasks = 0;   // with a device: operators of the host that any of its threads may execute
  // The block of the device's memory for static temporaries, and what they would need if one
  // instruction came after another.
  size_t device_arena_bytes = 0, device_serial_bytes = 0;
  std::string no_capture;  // with a device: why its part of a run is not captured; empty: it can be
  double build_ms = 0;
  // The analyses that made the plan, in the order they ran.
  struct Stage {
    std::string name;
    double ms = 0;
  };
  std::vector<Stage> stages;
};

}  // namespace heddle

// Tasks for the nodes of a graph: bodies of a given length to measure with, or bodies that find out
// whether a scheduler keeps the order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "benchmarks/scheduling/engine.h"
#include "benchmarks/scheduling/graph.h"

namespace heddle::bench {

// Timed bodies are a chain of dependent multiply-adds of about that length; an empty one only
// counts its calls, as all do.
enum class Body { kEmpty, k100ns, k1us, k10us, kCheck };

std::string_view BodyName(Body body);

// What one call of a timed body takes on this machine, through its pointer and with its data in the
// first-level cache. Measured at the first call for each body. One thread may call this.
double BodyNs(Body body);

// Owns the data of the tasks. Tasks may run at the same time as far as the graph allows; all
// members are for one thread, while no task runs.
class Workload {
 public:
  // `graph` outlives the workload.
  Workload(const Graph& graph, Body body);

  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  std::span<const Task> tasks() const { return tasks_; }
  std::span<const float> cost_ns() const { return cost_ns_; }

  // How often each task was executed since the last call; -1 where tasks differ in it.
  int64_t TakeCount();

  // For kCheck. A task's value is made of its number, the epoch and the values of its predecessors
  // at that moment: a task that runs too early takes values of another epoch, and its own is wrong.
  void BeginEpoch() { ++epoch_; }
  // Whether every task has the value of this epoch.
  bool ValuesAreRight() const;

  // What a task works on: a cache line each, as neighbours run on different threads.
  struct alignas(64) Slot {
    uint64_t count = 0;
    uint64_t value = 0;
    uint32_t task = 0;
    uint32_t steps = 0;  // of the multiply-add chain
    const Workload* workload = nullptr;
  };

 private:
  static void RunCheck(void* slot);

  const Graph& graph_;
  std::unique_ptr<Slot[]> slots_;
  std::vector<Task> tasks_;
  std::vector<float> cost_ns_;
  uint64_t epoch_ = 0;
};

}  // namespace heddle::bench

// For libraries that run tasks but know no graphs: how many predecessors each task still waits for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "benchmarks/scheduling/graph.h"

namespace heddle::bench {

// Any thread may call Arrive; what happened before an Arrive happens before what follows the one
// that returns true. The counters are ready for the next run once all tasks have started.
class DependencyCounters {
 public:
  // `graph` outlives the counters.
  explicit DependencyCounters(const Graph& graph)
      : graph_(graph), in_degree_(graph.size()), missing_(new std::atomic<uint32_t>[graph.size()]) {
    for (uint32_t v = 0; v < graph.size(); ++v) {
      in_degree_[v] = graph.InDegree(v);
      missing_[v].store(in_degree_[v], std::memory_order_relaxed);
      if (in_degree_[v] == 0) roots_.push_back(v);
    }
  }

  std::span<const uint32_t> roots() const { return roots_; }

  // A predecessor of `task` has finished; true if it was the last one. That call sets the counter
  // back: nobody else touches it before the next run.
  bool Arrive(uint32_t task) {
    const uint32_t in_degree = in_degree_[task];
    if (in_degree == 1) return true;
    if (missing_[task].fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
    missing_[task].store(in_degree, std::memory_order_relaxed);
    return true;
  }

  // Calls ready(s) for each successor s of the finished `task` that has become ready.
  template <typename Ready>
  void Finish(uint32_t task, Ready ready) {
    for (const uint32_t s : graph_.Successors(task)) {
      if (Arrive(s)) ready(s);
    }
  }

 private:
  const Graph& graph_;
  std::vector<uint32_t> in_degree_;
  const std::unique_ptr<std::atomic<uint32_t>[]> missing_;
  std::vector<uint32_t> roots_;
};

}  // namespace heddle::bench

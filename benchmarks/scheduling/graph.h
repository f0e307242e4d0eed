// Task graphs that the schedulers are compared on. Task numbers are a topological order: the order
// of the program. The same name and size give the same graph on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::bench {

// Immutable; any number of threads may read one.
class Graph {
 public:
  // `predecessors[v]` lists tasks below v, each once.
  Graph(std::string name, const std::vector<std::vector<uint32_t>>& predecessors);

  const std::string& name() const { return name_; }
  uint32_t size() const { return static_cast<uint32_t>(first_successor_.size() - 1); }
  size_t edges() const { return successors_.size(); }

  // Ascending.
  std::span<const uint32_t> Predecessors(uint32_t task) const {
    return Slice(first_predecessor_, predecessors_, task);
  }
  std::span<const uint32_t> Successors(uint32_t task) const {
    return Slice(first_successor_, successors_, task);
  }
  uint32_t InDegree(uint32_t task) const {
    return static_cast<uint32_t>(Predecessors(task).size());
  }

  // The number of tasks on the longest path.
  uint32_t CriticalPath() const;

  // No execution on `workers` (at least 1) takes fewer steps, a step being the time of one task: a
  // lower bound, found in O(tasks + edges). The graph is cut at tasks that all others come before
  // or after; between two of them work is shared, and those with k tasks still to come behind them
  // (or before them) leave k steps for these (E. B. Fernandez and B. Bussell, "Bounds on the number
  // of processors and time for multiprocessor optimal schedules", 1973).
  uint32_t LeastSteps(uint32_t workers) const;

 private:
  static std::span<const uint32_t> Slice(const std::vector<uint32_t>& first,
                                         const std::vector<uint32_t>& items, uint32_t task) {
    return {items.data() + first[task], items.data() + first[task + 1]};
  }

  std::string name_;
  // Compressed rows: the list of v is items[first[v]] up to items[first[v + 1]].
  std::vector<uint32_t> first_predecessor_, predecessors_, first_successor_, successors_;
};

// The names that MakeGraph knows: chain, fan, tree, ladder, random, wavefront, inception.
std::span<const std::string_view> GraphNames();

// A graph of about `size` tasks (the form rounds it), at least 16. The name must be a known one.
Graph MakeGraph(std::string_view name, uint32_t size);

}  // namespace heddle::bench

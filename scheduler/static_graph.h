// StaticGraph: an immutable dependency graph, the input of all schedulers here.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle {

// A directed acyclic graph whose node ids are a topological order, in compressed rows both ways.
struct StaticGraph {
  uint32_t size = 0;
  // The predecessors of v, ascending: pred[pred_begin[v] .. pred_begin[v + 1]).
  std::vector<uint32_t> pred_begin, pred;
  std::vector<uint32_t> succ_begin, succ;  // successors likewise
  // Per node: of the ready nodes, those of least priority go first. Empty: all have the same.
  std::vector<int64_t> priority;

  uint32_t in_degree(uint32_t v) const { return pred_begin[v + 1] - pred_begin[v]; }
  uint32_t out_degree(uint32_t v) const { return succ_begin[v + 1] - succ_begin[v]; }
  int64_t PriorityOf(uint32_t v) const { return priority.empty() ? 0 : priority[v]; }
};

// Fills the successor rows from the predecessor rows.
void CompleteSuccessors(StaticGraph* graph);

// A topological order in which, of the nodes that are ready, the one of least priority goes first,
// and among equals the one with the lowest number.
std::vector<uint32_t> OrderByPriority(const StaticGraph& graph);

}  // namespace heddle

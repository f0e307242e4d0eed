// A graph that never changes, as analyses of schedules see it.
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
};

// Fills the successor rows from the predecessor rows.
void CompleteSuccessors(StaticGraph* graph);

}  // namespace heddle

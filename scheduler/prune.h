// Dropping edges of a graph that other edges imply.
#pragma once

#include <cstddef>

#include "scheduler/static_graph.h"

namespace heddle {

// Drops edges u -> v for which the graph has another path from u to v; what is reachable stays so.
// Only the predecessor rows need be filled; the successor rows are made anew. Returns how many
// edges went.
//
// Each node's predecessors are looked for among the ancestors of the others, along at most `steps`
// edges a node (or a few per predecessor where there are many; edges far back count as several):
// linear in the graph, and exact where few nodes stand between a node and its oldest predecessor.
size_t PruneImpliedEdges(StaticGraph* graph, size_t steps = 256);

}  // namespace heddle

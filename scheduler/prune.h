// Dropping edges of a graph that other edges imply.
#pragma once

#include <cstddef>

#include "scheduler/static_graph.h"

namespace heddle {

// Removes each edge u -> v for which the graph has another path from u to v; reachability stays the
// same. Only the predecessor rows need to be filled; the successor rows are made anew. Returns the
// number of edges removed.
//
// For each node the search follows at most `steps` edges backwards from its predecessors (or a few
// per predecessor where there are many; edges far back count as several). So the time is linear in
// the graph, and the result is exact where few nodes lie between a node and its oldest predecessor.
size_t PruneImpliedEdges(StaticGraph* graph, size_t steps = 256);

}  // namespace heddle

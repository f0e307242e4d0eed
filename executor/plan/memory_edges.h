// Memory edges: additional dependencies that let more temporaries share memory. Instructions that
// could run concurrently wait for each other if the output of one is to lie where operands of the
// other were.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "executor/plan/plan.h"
#include "scheduler/static_graph.h"

namespace heddle {

using OrderEdge = std::pair<uint32_t, uint32_t>;  // the second instruction waits for the first

// Finds edges that the offsets of `serial`, a plan for one instruction after another, require and
// that `graph`, the dependencies of its instructions, does not imply: if a temporary uses memory of
// an earlier one, from every user of the earlier one to the writer of the later one. Pairs that
// share the most memory come first; a pair whose edges would make the longest path, by `cost_ns`,
// more than 5 % longer than in `graph` is skipped. The result is a suggestion: the memory planner
// looks at what the resulting order guarantees. Empty for more than 2,000 instructions. At most
// 20,000 pairs are tried, each in O(edges), and O(instructions * edges / 64) if it is taken.
std::vector<OrderEdge> FindMemoryEdges(const Plan& serial, const StaticGraph& graph,
                                       std::span<const float> cost_ns);

// The graph with these edges added, each from a smaller to a larger node; implied edges are
// dropped.
StaticGraph AddEdges(const StaticGraph& graph, std::span<const OrderEdge> edges);

}  // namespace heddle

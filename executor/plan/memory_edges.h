// Order that lets more temporaries share memory: instructions that could run side by side are made
// to wait for each other where one's output is to lie where the other's operands were.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "executor/plan/plan.h"
#include "scheduler/static_graph.h"

namespace heddle {

using OrderEdge = std::pair<uint32_t, uint32_t>;  // the second waits for the first

// The edges that the places of `serial`, a plan for one instruction after another, need and
// `graph`, the dependencies of its instructions, does not imply: for a temporary and another one
// that lay in its memory before, from every user of the latter to the instruction that writes the
// former. Those that share the most come first; two whose edges would make the longest path, by
// `cost_ns`, more than 5 % longer than in `graph` get none. A suggestion: who plans memory for the
// resulting order looks at what that guarantees. Nothing for more than 2,000 instructions, and at
// most 20,000 pairs are tried, each in O(edges), O(instructions * edges / 64) where it is taken.
std::vector<OrderEdge> FindMemoryEdges(const Plan& serial, const StaticGraph& graph,
                                       std::span<const float> cost_ns);

// `graph` with these edges, each from a smaller to a larger node; implied ones are dropped.
StaticGraph AddEdges(const StaticGraph& graph, std::span<const OrderEdge> edges);

}  // namespace heddle

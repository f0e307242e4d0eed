// Units: what one worker executes without synchronization inside. A unit is a chain of nodes, or a
// few cheap neighbours, so that the price of a hand-over is paid per unit and not per node.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/static_graph.h"

namespace heddle {

struct UnitGraph {
  StaticGraph graph;                 // between units; ids are a topological order
  std::vector<uint32_t> nodes;       // unit after unit, within a unit in ascending order
  std::vector<uint32_t> node_begin;  // per unit, + end
  std::vector<float> cost_ns;        // per unit
  // Per unit: the longest path from its start to the end of the graph.
  std::vector<double> bottom_level_ns;
  double serial_ns = 0;  // sum of all costs
  double path_ns = 0;    // the longest path
  uint32_t size() const { return graph.size; }
};

// Forms the units; `cost_ns` is per node. A node and its only successor become one unit if it is
// that one's only predecessor and both have the same priority, which the unit keeps. With
// `group_ns` > 0, neighbours in topological order that cost less are merged up to that cost, if no
// node has a priority and all members could start within `group_ns` of each other. O(nodes +
// edges).
UnitGraph FormUnits(const StaticGraph& graph, std::span<const float> cost_ns, float group_ns);

}  // namespace heddle

// Units: what one worker executes without looking at anybody else. A unit is a chain of nodes, or a
// few cheap neighbours, so that the price of handing work over is paid per unit and not per node.
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
  double serial_ns = 0;  // all costs
  double path_ns = 0;    // the longest path
  uint32_t size() const { return graph.size; }
};

// `cost_ns` is per node. Nodes with one successor that has one predecessor become one unit, if both
// have one priority: a unit has the priority of its nodes. With `group_ns` > 0, neighbours in
// topological order below that cost are merged up to it, as long as all members could start within
// `group_ns` of each other, and none has a priority. O(nodes + edges).
UnitGraph FormUnits(const StaticGraph& graph, std::span<const float> cost_ns, float group_ns);

}  // namespace heddle

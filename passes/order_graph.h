// Dependencies between the operators of one block, and new orders that respect them.
#pragma once

#include <span>
#include <vector>

#include "core/programs/ir.h"
#include "passes/nested_blocks.h"

namespace heddle::passes {

// Valid until the program changes. An operator that runs blocks reads and writes all that these
// touch. Operators whose order is observable (random numbers, side effects, …) keep it, and so do
// those with control edges between them.
class OrderGraph {
 public:
  // `uses`: PassContext::uses; if it is empty, inner blocks are walked through.
  OrderGraph(const ir::Program& program, int block, const BlockUses& uses = {});

  int size() const { return static_cast<int>(begin_.size()) - 1; }
  // The earlier operators on which `at` depends, one entry per reason.
  std::span<const int> before(int at) const {
    return {list_.data() + begin_[static_cast<size_t>(at)],
            list_.data() + begin_[static_cast<size_t>(at) + 1]};
  }

 private:
  std::vector<size_t> begin_;
  std::vector<int> list_;
};

// Orders nodes, each of which joins some operators: node_of[position] is in [0, nodes). The order
// respects the graph and otherwise follows the nodes' first operators. Empty: the nodes depend on
// each other in a cycle.
std::vector<int> OrderNodes(const OrderGraph& graph, const std::vector<int>& node_of, int nodes);

}  // namespace heddle::passes

// Dependencies between the operators of one block, and new orders that respect them.
#pragma once

#include <span>
#include <vector>

#include "core/programs/ir.h"
#include "passes/nested_blocks.h"

namespace heddle::passes {

// Valid until the program changes. An operator that holds sub-blocks reads and writes all that they
// touch; operators whose order is visible (random numbers, side effects, …) keep their order, and
// so do those with control edges between them.
class OrderGraph {
 public:
  // `uses`: as PassContext has them; without any, blocks inside are walked through.
  OrderGraph(const ir::Program& program, int block, const BlockUses& uses = {});

  int size() const { return static_cast<int>(begin_.size()) - 1; }
  // The earlier operators that `at` depends on, once per reason.
  std::span<const int> before(int at) const {
    return {list_.data() + begin_[static_cast<size_t>(at)],
            list_.data() + begin_[static_cast<size_t>(at) + 1]};
  }

 private:
  std::vector<size_t> begin_;
  std::vector<int> list_;
};

// Orders nodes of joined operators, node_of[position] in [0, nodes): an order that respects the
// graph and otherwise follows the nodes' first operators. Empty when the nodes depend on each other
// in a cycle.
std::vector<int> OrderNodes(const OrderGraph& graph, const std::vector<int>& node_of, int nodes);

}  // namespace heddle::passes

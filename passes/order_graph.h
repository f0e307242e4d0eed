// What the operators of block 0 must wait for, and new orders of them.
#pragma once

#include <span>
#include <vector>

#include "core/ir.h"

namespace heddle::passes {

// Valid until the program changes. An operator that holds sub-blocks reads and writes all that they
// touch; operators whose order shows (random numbers, side effects, …) wait for each other.
class OrderGraph {
 public:
  explicit OrderGraph(const ir::Program& program);

  int size() const { return static_cast<int>(begin_.size()) - 1; }
  // Earlier operators that `at` must wait for: each as often as there are reasons.
  std::span<const int> before(int at) const {
    return {list_.data() + begin_[static_cast<size_t>(at)],
            list_.data() + begin_[static_cast<size_t>(at) + 1]};
  }

 private:
  std::vector<size_t> begin_;
  std::vector<int> list_;
};

// Operators joined into nodes: node_of[position] in [0, nodes). The nodes in an order that respects
// the graph and is otherwise that of their first operators. Empty when nodes wait for each other in
// a ring.
std::vector<int> OrderNodes(const OrderGraph& graph, const std::vector<int>& node_of, int nodes);

}  // namespace heddle::passes

// Groups of element-wise operators of one block that one loop can compute.
#pragma once

#include <vector>

#include "core/programs/ir.h"
#include "passes/fuse/element_ops.h"
#include "passes/graph_view.h"
#include "passes/order_graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// The number of inputs and results that a loop with results like `result` may have.
size_t MostOperands(const ir::Var& result);

// Groups of operators that are connected by their operands and have one dtype and, as far as known,
// one shape, split if they would have very many operands. Groups are convex, and their quotient
// graph has no cycle. Takes near-linear time.
class ElementGroups {
 public:
  ElementGroups(const ir::Program& program, const GraphView& view, const OrderGraph& order);

  const ElementOp& op(int at) const { return ops_[static_cast<size_t>(at)]; }
  const std::vector<ElementOp>& ops() const { return ops_; }
  // The ascending positions of each group of two or more operators.
  const std::vector<std::vector<int>>& groups() const { return groups_; }

 private:
  bool Joins(int producer, int reader) const;
  std::vector<int> DepthFirst(const std::vector<int>& group) const;
  void Cut(const std::vector<int>& group);

  const ir::Program& p_;
  const std::vector<ir::Op>& block_;
  const GraphView& view_;
  std::vector<ElementOp> ops_;
  std::vector<std::vector<int>> groups_;
};

}  // namespace heddle::passes

// Groups of element-wise operators of one block that one loop can compute.
#pragma once

#include <vector>

#include "core/programs/ir.h"
#include "passes/graph_view.h"
#include "passes/order_graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// An operator that is one or more steps of a fused loop: a sum of n operands is n - 1 additions.
struct ElementOp {
  bool fusable = false;
  std::vector<ir::VarId> operands;
  ir::VarId out = ir::kNoVar;
};

// Groups of operators that are connected by their operands and have one dtype and, as far as the
// program says, one shape, cut where they would have very many operands. Groups are convex, and
// their quotient graph has no cycle. Near-linear time.
class ElementGroups {
 public:
  ElementGroups(const ir::Program& program, const GraphView& view, const OrderGraph& order);

  const ElementOp& op(int at) const { return ops_[static_cast<size_t>(at)]; }
  // The ascending positions of each group of at least two operators.
  const std::vector<std::vector<int>>& groups() const { return groups_; }

 private:
  void FindFusable();
  bool Fusable(int at, ElementOp* op) const;
  bool Joins(int producer, int reader) const;
  void Layer();
  void Sink();
  void Join();
  std::vector<int> DepthFirst(const std::vector<int>& group) const;
  void Cut(const std::vector<int>& group);

  const ir::Program& p_;
  const std::vector<ir::Op>& block_;
  const GraphView& view_;
  const OrderGraph& order_;
  std::vector<ElementOp> ops_;
  std::vector<int> layer_;
  std::vector<std::vector<int>> groups_;
};

}  // namespace heddle::passes

// Which element-wise operators of block 0 can be computed in one loop.
#pragma once

#include <vector>

#include "core/ir.h"
#include "passes/graph_view.h"
#include "passes/order_graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// An operator that is a step of a fused loop, or several: a sum of n is n - 1 additions.
struct ElementOp {
  bool fusable = false;
  std::vector<ir::VarId> operands;
  ir::VarId out = ir::kNoVar;
};

// Groups that hang together by what their operators hand each other, of one dtype and one shape as
// far as the program says; no way leads out of a group and back into it, nor through several groups
// in a ring. Near-linear time.
class ElementGroups {
 public:
  ElementGroups(const ir::Program& program, const GraphView& view, const OrderGraph& order);

  const ElementOp& op(int at) const { return ops_[static_cast<size_t>(at)]; }
  // Positions, ascending, of each group of at least two.
  const std::vector<std::vector<int>>& groups() const { return groups_; }

 private:
  void FindFusable();
  bool Fusable(int at, ElementOp* op) const;
  bool Joins(int producer, int reader) const;
  void Layer();
  void Sink();
  void Join();

  const ir::Program& p_;
  const GraphView& view_;
  const OrderGraph& order_;
  std::vector<ElementOp> ops_;
  std::vector<int> layer_;
  std::vector<std::vector<int>> groups_;
};

}  // namespace heddle::passes

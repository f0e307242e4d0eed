// The element-wise operators and reductions of a block that fused loops know.
#pragma once

#include <vector>

#include "core/programs/ir.h"
#include "passes/graph_view.h"

namespace heddle::passes {

// An operator that is one or more steps of a fused loop: a sum of n operands is n - 1 additions.
struct ElementOp {
  bool fusable = false;
  std::vector<ir::VarId> operands;
  ir::VarId out = ir::kNoVar;
  int axes = 0;        // it reduces so many dimensions, the last ones; 0: it is element-wise
  bool views = false;  // it is no computation, but another shape of its operand
};

enum class WithElementOps { kNone, kReductions, kReshapes };

// One for each operator of the block. Operators that the plan computes ahead, because their
// operands never change, are not fusable; reductions and reshapes are so on request.
std::vector<ElementOp> FindElementOps(const ir::Program& program, const GraphView& view,
                                      WithElementOps with = WithElementOps::kNone);

}  // namespace heddle::passes

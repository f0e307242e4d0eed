// The element-wise operators and reductions of a block that fused loops support.
#pragma once

#include <vector>

#include "core/programs/ir.h"
#include "passes/graph_view.h"

namespace heddle::passes {

// An operator that becomes one or more steps of a fused loop: a sum of n operands is n - 1
// additions.
struct ElementOp {
  bool fusable = false;
  std::vector<ir::VarId> operands;
  ir::VarId out = ir::kNoVar;
  int axes = 0;        // the number of trailing dimensions that it reduces; 0: it is element-wise
  bool views = false;  // it computes nothing, but gives its operand another shape
};

enum class WithElementOps { kNone, kReductions, kReshapes };

// One entry for each operator of the block. Operators that the plan computes ahead are not fusable;
// reductions and reshapes are on request.
std::vector<ElementOp> FindElementOps(const ir::Program& program, const GraphView& view,
                                      WithElementOps with = WithElementOps::kNone);

}  // namespace heddle::passes

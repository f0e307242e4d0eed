// Replaces groups of element-wise operators, and reductions of rows, by one operator each.
#pragma once

#include <vector>

#include "core/programs/ir.h"
#include "passes/fuse/element_ops.h"
#include "passes/graph_view.h"
#include "passes/order_graph.h"
#include "passes/pass.h"

namespace heddle::passes {

struct FusedGroup {
  std::vector<int> members;  // positions, ascending
  int axes = 0;  // the number of dimensions of a row of fused_rows; 0: fused_elementwise
};

// Whether the program fetches `v`, or an operator outside the group (ascending positions) reads it.
bool ReadOutside(const GraphView& view, const PassContext& context, ir::VarId v,
                 const std::vector<int>& group);

// Replaces each group by one operator. Precondition: the groups are convex, and their quotient
// graph has no cycle. A group of which fewer than two operators are needed stays. Returns whether
// the block of `view` has changed.
bool FuseGroups(ir::Program& program, const PassContext& context, const GraphView& view,
                const OrderGraph& order, const std::vector<ElementOp>& elements,
                const std::vector<FusedGroup>& groups);

}  // namespace heddle::passes

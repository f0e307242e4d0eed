// Groups of operators of one block that can be computed together.
#pragma once

#include <vector>

#include "core/function_ref.h"
#include "passes/fuse/element_ops.h"
#include "passes/order_graph.h"

namespace heddle::passes {

// Groups fusable operators that are connected by joining dependencies, `joins(producer, reader)`:
// the ascending positions of each group. Groups are convex, and their quotient graph has no cycle.
// An operator that joins no other is a group of its own. Takes near-linear time.
std::vector<std::vector<int>> ConvexGroups(const OrderGraph& order,
                                           const std::vector<ElementOp>& ops,
                                           FunctionRef<bool(int producer, int reader)> joins);

}  // namespace heddle::passes

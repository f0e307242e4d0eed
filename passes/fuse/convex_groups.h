// Groups of operators of one block that can be computed together.
#pragma once

#include <vector>

#include "core/function_ref.h"
#include "passes/fuse/element_ops.h"
#include "passes/order_graph.h"

namespace heddle::passes {

// The ascending positions of each group of fusable operators that are connected by dependencies
// that join: `joins(producer, reader)`. Groups are convex, and their quotient graph has no cycle.
// An operator that joins no other is a group. Near-linear time.
std::vector<std::vector<int>> ConvexGroups(const OrderGraph& order,
                                           const std::vector<ElementOp>& ops,
                                           FunctionRef<bool(int producer, int reader)> joins);

}  // namespace heddle::passes

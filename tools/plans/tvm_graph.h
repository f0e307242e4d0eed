// A plan as the graph JSON of TVM's graph executor. Not installed.
#pragma once

#include "heddle/plan_description.h"
#include "tools/json_output.h"

namespace heddle::tools {

// nodes, arg_nodes, heads, node_row_ptr, and as attrs dltype, shape, storage_id and device_index,
// one entry for each output of each node. Feeds, parameters and constants are nodes of op "null".
// Operators that run blocks, and values whose shape is found while running, have no counterpart
// there: kUnimplemented, with the operator.
Result<Json> TvmGraph(const PlanDescription& plan);

}  // namespace heddle::tools

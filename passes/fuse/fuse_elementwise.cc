// Connected element-wise operators become one fused_elementwise, a loop that applies all of them to
// one tile after another.
#include <algorithm>
#include <vector>

#include "core/tile_ops.h"
#include "passes/fuse/element_groups.h"
#include "passes/fuse/fuse_groups.h"
#include "passes/graph_view.h"
#include "passes/order_graph.h"
#include "passes/pass.h"

namespace heddle::passes {
namespace {

// Fewer than two operators make no group.
bool HasTwo(const std::vector<ir::Op>& ops) {
  int count = 0;
  return std::any_of(ops.begin(), ops.end(), [&](const ir::Op& op) {
    return (op.type() == "sum" || FindTileOp(op.type()) != nullptr) && ++count == 2;
  });
}

Result<bool> RunFuseElementwise(ir::Program& program, PassContext& context) {
  if (!HasTwo(program.blocks[static_cast<size_t>(context.block)].ops)) return false;
  const GraphView view(program, context);
  const OrderGraph order(program, context.block, context.uses);
  const ElementGroups elements(program, view, order);
  std::vector<FusedGroup> groups;
  for (const std::vector<int>& members : elements.groups()) groups.push_back({members, 0});
  return FuseGroups(program, context, view, order, elements.ops(), groups);
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_elementwise) {
  pass.doc = "graphs of element-wise operators -> fused_elementwise";
  pass.level = 2;
  pass.each_block = true;
  pass.own_ops = {"fused_elementwise"};
  pass.before = "b = tanh(a); c = b * a; d = c + 1";
  pass.after = "d = fused_elementwise(a)";
  pass.refuses =
      "single operators; operators with another dtype or shape, as far as the program says; "
      "groups with a path that leaves and enters them again; results that several blocks name";
  pass.run = RunFuseElementwise;
}

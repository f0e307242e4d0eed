// Element-wise operators with reshapes between them become one fused_elementwise: a reshape moves
// no element, so that one loop can cross it.
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "passes/fuse/convex_groups.h"
#include "passes/fuse/element_groups.h"
#include "passes/fuse/element_ops.h"
#include "passes/fuse/fuse_groups.h"
#include "passes/graph_view.h"
#include "passes/order_graph.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::VarId;

class ReshapedGroups {
 public:
  ReshapedGroups(const ir::Program& program, const PassContext& context, const GraphView& view,
                 const OrderGraph& order, std::vector<ElementOp> ops)
      : p_(program),
        block_(program.blocks[static_cast<size_t>(view.block())].ops),
        context_(context),
        view_(view),
        ops_(std::move(ops)) {
    for (size_t at = 0; at < ops_.size(); ++at)
      if (ops_[at].views && ShapeIsFetched(block_[at])) ops_[at].fusable = false;
    const auto joins = [this](int producer, int reader) { return Joins(producer, reader); };
    std::vector<std::vector<int>> groups;
    do {
      groups = ConvexGroups(order, ops_, joins);
    } while (DropViews(groups));
    for (std::vector<int>& group : groups)
      if (std::any_of(group.begin(), group.end(), [&](int at) { return op(at).views; }))
        groups_.push_back({std::move(group), 0});
  }

  const std::vector<ElementOp>& ops() const { return ops_; }
  const std::vector<FusedGroup>& groups() const { return groups_; }

 private:
  const ElementOp& op(int at) const { return ops_[static_cast<size_t>(at)]; }

  // Whether the program fetches an output other than the reshaped value: a loop writes no XShape.
  bool ShapeIsFetched(const ir::Op& reshape) const {
    return std::any_of(reshape.outputs.begin() + 1, reshape.outputs.end(), [&](const auto& slot) {
      return std::any_of(slot.begin(), slot.end(),
                         [&](VarId v) { return context_.fetched.count(v) > 0; });
    });
  }

  bool Joins(int producer, int reader) const {
    const ElementOp &a = op(producer), &b = op(reader);
    const ir::Var &from = p_.vars[a.out], &to = p_.vars[b.out];
    if (!SamePlace(block_[static_cast<size_t>(producer)], block_[static_cast<size_t>(reader)]) ||
        from.dtype != to.dtype)
      return false;
    return b.views ? b.operands[0] == a.out : from.shape == to.shape;
  }

  // Excludes reshapes whose operand or result is needed outside their group, and those of groups
  // with too many tensors: they stay views. Returns whether there were any, since the groups are
  // then other ones.
  bool DropViews(const std::vector<std::vector<int>>& groups) {
    bool dropped = false;
    for (const std::vector<int>& group : groups) {
      std::unordered_set<VarId> made, tensors;
      for (const int at : group) {
        made.insert(op(at).out);
        for (const VarId v : op(at).operands)
          if (!made.count(v)) tensors.insert(v);
        if (ReadOutside(view_, context_, op(at).out, group)) tensors.insert(op(at).out);
      }
      const bool large = tensors.size() > MostOperands(p_.vars[op(group[0]).out]);
      for (const int at : group) {
        ElementOp& view = ops_[static_cast<size_t>(at)];
        if (!view.views || (!large && made.count(view.operands[0]) && !tensors.count(view.out)))
          continue;
        view.fusable = false;
        dropped = true;
      }
    }
    return dropped;
  }

  const ir::Program& p_;
  const std::vector<ir::Op>& block_;
  const PassContext& context_;
  const GraphView& view_;
  std::vector<ElementOp> ops_;
  std::vector<FusedGroup> groups_;
};

Result<bool> RunFuseReshaped(ir::Program& program, PassContext& context) {
  const GraphView view(program, context);
  std::vector<ElementOp> ops = FindElementOps(program, view, WithElementOps::kReshapes);
  if (std::none_of(ops.begin(), ops.end(), [](const ElementOp& op) { return op.views; }))
    return false;
  const OrderGraph order(program, context.block, context.uses);
  const ReshapedGroups reshaped(program, context, view, order, std::move(ops));
  return FuseGroups(program, context, view, order, reshaped.ops(), reshaped.groups());
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_reshaped) {
  pass.doc = "element-wise operators with reshapes between them -> fused_elementwise";
  pass.before = "b = tanh(a); c = reshape2(b, [2, 6]); d = c * c";
  pass.after = "d = fused_elementwise(a)";
  pass.refuses =
      "reshapes that other operators read, or of what other operators make; shapes that variables "
      "hold; what fuse_elementwise leaves alone; programs for a device";
  pass.level = 2;
  pass.needs = PassNeeds::kHostCaches;
  pass.each_block = true;
  pass.own_ops = {"fused_elementwise"};
  pass.seeks = OfTypes({"reshape2"});
  pass.run = RunFuseReshaped;
}

// Reductions of rows, with the element-wise operators that compute their operands or read their
// results, become one fused_rows: a loop that applies all of them to one block of rows after
// another. A row consists of the last dimensions.
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "passes/fuse/convex_groups.h"
#include "passes/fuse/element_ops.h"
#include "passes/fuse/fuse_groups.h"
#include "passes/graph_view.h"
#include "passes/order_graph.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::VarId;

// Longer rows, in bytes, and more tensors in a loop exceed the first-level cache: then the loop
// gains nothing, and may lose the parallelism of separate instructions.
constexpr int64_t kMostRowBytes = 16 << 10;
constexpr size_t kMostTensors = 24;

// The shape of the reduced values, and the number of its dimensions that make a row.
struct Domain {
  Shape shape;
  int axes = 0;
  bool operator==(const Domain& o) const { return shape == o.shape && axes == o.axes; }

  Shape Rows(bool keep_dims) const {  // the shape of one value per row
    Shape rows;
    for (int i = 0; i < shape.rank(); ++i)
      if (i < shape.rank() - axes)
        rows.push_back(shape[i]);
      else if (keep_dims)
        rows.push_back(1);
    return rows;
  }
};

class RowGroups {
 public:
  RowGroups(const ir::Program& program, const PassContext& context, const GraphView& view,
            const OrderGraph& order, std::vector<ElementOp> ops)
      : p_(program),
        block_(program.blocks[static_cast<size_t>(view.block())].ops),
        context_(context),
        view_(view),
        ops_(std::move(ops)) {
    for (ElementOp& op : ops_)
      if (op.fusable && op.axes > 0) op.fusable = AddDomain(op);
    const auto joins = [this](int producer, int reader) { return Joins(producer, reader); };
    for (std::vector<int>& group : ConvexGroups(order, ops_, joins))
      if (const int axes = AxesOf(group); axes > 0) groups_.push_back({std::move(group), axes});
  }

  const std::vector<ElementOp>& ops() const { return ops_; }
  const std::vector<FusedGroup>& groups() const { return groups_; }

 private:
  const ElementOp& op(int at) const { return ops_[static_cast<size_t>(at)]; }
  const Shape& ShapeOf(const ElementOp& op) const { return p_.vars[op.out].shape; }
  Domain DomainOf(const ElementOp& op) const { return {p_.vars[op.operands[0]].shape, op.axes}; }

  bool AddDomain(const ElementOp& op) {
    Domain domain = DomainOf(op);
    int64_t cols = 1;
    const auto size = static_cast<int64_t>(SizeOf(p_.vars[op.out].dtype));
    for (int i = domain.shape.rank() - domain.axes; i < domain.shape.rank(); ++i) {
      if (domain.shape[i] <= 0 || domain.shape[i] > kMostRowBytes / size / cols) return false;
      cols *= domain.shape[i];
    }
    if (cols == 1) return false;
    if (std::find(domains_.begin(), domains_.end(), domain) == domains_.end())
      domains_.push_back(std::move(domain));
    return true;
  }

  bool Joins(int producer, int reader) const {
    const ElementOp &a = op(producer), &b = op(reader);
    if (!SamePlace(block_[static_cast<size_t>(producer)], block_[static_cast<size_t>(reader)]) ||
        p_.vars[a.out].dtype != p_.vars[b.out].dtype)
      return false;
    if (b.axes > 0) return a.axes == 0;  // `a` computes what `b` reduces
    const Shape &from = ShapeOf(a), &to = ShapeOf(b);
    if (from == to) return true;
    return std::any_of(domains_.begin(), domains_.end(), [&](const Domain& d) {
      return d.shape == to && d.Rows(true) == from && (a.axes == 0 || DomainOf(a) == d);
    });
  }

  // The number of dimensions that make a row of the group; 0: fused_rows cannot compute the group.
  int AxesOf(const std::vector<int>& group) const {
    const auto reduction =
        std::find_if(group.begin(), group.end(), [&](int at) { return op(at).axes > 0; });
    if (group.size() < 2 || reduction == group.end()) return 0;
    const Domain domain = DomainOf(op(*reduction));
    const Shape kept = domain.Rows(true), dropped = domain.Rows(false);
    std::unordered_set<VarId> made, tensors;
    for (const int at : group) {
      const ElementOp& member = op(at);
      const Shape& shape = ShapeOf(member);
      if (member.axes > 0 && !(DomainOf(member) == domain)) return 0;
      if (!(shape == domain.shape) && !(shape == kept) && !(shape == dropped)) return 0;
      made.insert(member.out);
      for (const VarId v : member.operands)
        if (!made.count(v)) tensors.insert(v);
      if (ReadOutside(view_, context_, member.out, group)) tensors.insert(member.out);
    }
    return tensors.size() <= kMostTensors ? domain.axes : 0;
  }

  const ir::Program& p_;
  const std::vector<ir::Op>& block_;
  const PassContext& context_;
  const GraphView& view_;
  std::vector<ElementOp> ops_;
  std::vector<Domain> domains_;
  std::vector<FusedGroup> groups_;
};

Result<bool> RunFuseRows(ir::Program& program, PassContext& context) {
  const GraphView view(program, context);
  std::vector<ElementOp> ops = FindElementOps(program, view, WithElementOps::kReductions);
  if (std::none_of(ops.begin(), ops.end(), [](const ElementOp& op) { return op.axes > 0; }))
    return false;
  const OrderGraph order(program, context.block, context.uses);
  const RowGroups rows(program, context, view, order, std::move(ops));
  return FuseGroups(program, context, view, order, rows.ops(), rows.groups());
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_rows) {
  pass.doc =
      "reductions of rows with the element-wise operators before and after them -> fused_rows";
  pass.before =
      "m = reduce_mean(x, dim=[-1], keep_dim); d = x - m; v = reduce_mean(d * d, dim=[-1])";
  pass.after = "d, v = fused_rows(x)";
  pass.refuses =
      "reductions over other dimensions than the last ones, or of rows whose length the program "
      "does not say or that have more than 16 KiB; groups of more than 24 tensors; other dtypes "
      "than float32 and float64; operators of different places; programs for a device";
  pass.level = 2;
  pass.needs = PassNeeds::kHostCaches;
  pass.each_block = true;
  pass.own_ops = {"fused_rows"};
  pass.seeks = OfTypes({"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"});
  pass.run = RunFuseRows;
}

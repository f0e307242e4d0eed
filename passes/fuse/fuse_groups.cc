#include "passes/fuse/fuse_groups.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "core/tile_ops.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::VarId;

// Writes the attributes of fused_elementwise and fused_rows
// (kernels/fused/element_program.h).
class ProgramWriter {
 public:
  ProgramWriter(const std::vector<ir::Op>& block, const std::vector<ElementOp>& elements)
      : block_(block), elements_(elements) {}

  // `members`: in order. `outs`: the results that other operators read, the last member's first.
  // `axes`: the number of dimensions that make a row of fused_rows; 0: the operator is
  // fused_elementwise.
  ir::Op Write(const std::vector<int>& members, const std::vector<VarId>& inputs,
               const std::vector<VarId>& outs, int axes) {
    for (VarId v : inputs) value_.emplace(v, next_++);
    for (int m : members) AddOp(m);
    Ints out_values;
    for (VarId v : outs) out_values.push_back(value_.at(v));
    const ir::Op& last = block_[static_cast<size_t>(members.back())];
    ir::Op fused = ir::MakeOp(*FindOp(axes > 0 ? "fused_rows" : "fused_elementwise"));
    fused.index = last.index;
    fused.call_stack = last.call_stack;
    fused.inputs[0] = inputs;
    fused.outputs[0] = outs;
    auto set = [&](const char* name, AttrValue v) {
      fused.attrs[static_cast<size_t>(fused.def->FindAttr(name))] = std::move(v);
    };
    set("ops", std::move(ops_));
    set("values", std::move(values_));
    set("code", std::move(code_));
    set("outs", std::move(out_values));
    if (axes > 0) set("axes", int64_t{axes});
    return fused;
  }

 private:
  void AddOp(int at) {
    const ir::Op& op = block_[static_cast<size_t>(at)];
    const ElementOp& element = elements_[static_cast<size_t>(at)];
    const bool sum = op.type() == "sum";
    if (!sum) {
      code_.push_back(KindOf(op));
      for (VarId v : element.operands) code_.push_back(value_.at(v));
      value_[element.out] = next_++;
      return;
    }
    const int64_t kind = KindOf(ir::MakeOp(*FindOp("elementwise_add")));
    int64_t so_far = value_.at(element.operands[0]);
    for (size_t i = 1; i < element.operands.size(); ++i) {
      code_.insert(code_.end(), {kind, so_far, value_.at(element.operands[i])});
      so_far = next_++;
    }
    value_[element.out] = so_far;
  }

  int64_t KindOf(const ir::Op& op) {
    Floats values;
    if (const int shape = op.def->FindAttr("shape"); op.type() == "reshape2") {
      const auto& dims = std::get<Ints>(op.attrs[static_cast<size_t>(shape)]);
      values.push_back(static_cast<double>(dims.size()));
      values.insert(values.end(), dims.begin(), dims.end());
      return AddKind(op, values);
    }
    std::vector<AttrValue> attrs = op.attrs;
    for (size_t i = 0; i < attrs.size(); ++i)  // `axes` says which dimensions are reduced
      if (!IsNumber(attrs[i])) attrs[i] = op.def->attrs()[i].default_value;
    PackNumbers(*op.def, attrs, &values);
    return AddKind(op, values);
  }
  int64_t AddKind(const ir::Op& op, const Floats& values) {
    // Numbers are compared by their bits, since NaN cannot be ordered.
    std::vector<uint64_t> bits;
    for (double x : values) bits.push_back(std::bit_cast<uint64_t>(x));
    const auto [it, added] =
        kinds_.emplace(std::pair(op.def, std::move(bits)), static_cast<int64_t>(kinds_.size()));
    if (added) {
      ops_.push_back(op.type());
      values_.insert(values_.end(), values.begin(), values.end());
    }
    return it->second;
  }

  const std::vector<ir::Op>& block_;
  const std::vector<ElementOp>& elements_;
  std::unordered_map<VarId, int64_t> value_;
  int64_t next_ = 0;
  std::map<std::pair<const OpDef*, std::vector<uint64_t>>, int64_t> kinds_;
  Strings ops_;
  Floats values_;
  Ints code_;
};

class GroupFuser {
 public:
  GroupFuser(ir::Program& program, const PassContext& context, const GraphView& view,
             const OrderGraph& order, const std::vector<ElementOp>& elements)
      : p_(program),
        context_(context),
        view_(view),
        order_(order),
        elements_(elements),
        node_of_(static_cast<size_t>(order_.size()), -1) {}

  bool Run(const std::vector<FusedGroup>& groups) {
    for (const FusedGroup& group : groups) Fuse(group.members, group.axes);
    if (nodes_.empty()) return false;
    auto& ops = p_.blocks[static_cast<size_t>(view_.block())].ops;
    std::vector<int> alone;  // the operator of each node that has one alone
    for (int i = 0; i < order_.size(); ++i) {
      int& node = node_of_[static_cast<size_t>(i)];
      if (node >= 0) continue;
      node = static_cast<int>(nodes_.size() + alone.size());
      alone.push_back(i);
    }
    const size_t fused = nodes_.size();
    const std::vector<int> order =
        OrderNodes(order_, node_of_, static_cast<int>(fused + alone.size()));
    if (order.empty()) return false;
    std::vector<ir::Op> ordered;
    ordered.reserve(order.size());
    for (int n : order) {
      LookForInterrupt();
      const auto node = static_cast<size_t>(n);
      ordered.push_back(
          std::move(node < fused ? nodes_[node] : ops[static_cast<size_t>(alone[node - fused])]));
    }
    ops = std::move(ordered);
    return true;
  }

 private:
  void Fuse(const std::vector<int>& group, int axes) {
    // Goes from the end, so that unused results are left out.
    std::vector<int> live;
    std::vector<VarId> outs;
    std::unordered_map<VarId, bool> needed;
    for (auto m = group.rbegin(); m != group.rend(); ++m) {
      const ElementOp& op = elements_[static_cast<size_t>(*m)];
      const bool outside = ReadOutside(view_, context_, op.out, group);
      if (outside) outs.push_back(op.out);
      if (!outside && !needed[op.out]) continue;
      for (VarId v : op.operands) needed[v] = true;
      live.push_back(*m);
    }
    if (live.size() < 2) return;
    const auto reduces = [&](int m) { return elements_[static_cast<size_t>(m)].axes > 0; };
    if (axes > 0 && std::none_of(live.begin(), live.end(), reduces)) return;
    std::reverse(live.begin(), live.end());
    const int node = static_cast<int>(nodes_.size());
    nodes_.push_back(ProgramWriter(p_.blocks[static_cast<size_t>(view_.block())].ops, elements_)
                         .Write(live, InputsOf(live, group, outs[0]), outs, axes));
    const auto& ops = p_.blocks[static_cast<size_t>(view_.block())].ops;
    for (int m : group) {
      node_of_[static_cast<size_t>(m)] = node;
      TakePlace(ops[static_cast<size_t>(m)], &nodes_.back());
    }
  }

  // The operands from outside the group. The first one, if possible, is a tensor that is not used
  // later, so that the first output can reuse its memory.
  std::vector<VarId> InputsOf(const std::vector<int>& live, const std::vector<int>& group,
                              VarId out) const {
    std::vector<VarId> inputs;
    std::unordered_map<VarId, bool> seen;
    for (int m : live) {
      for (VarId v : elements_[static_cast<size_t>(m)].operands)
        if (!std::exchange(seen[v], true)) inputs.push_back(v);
      seen[elements_[static_cast<size_t>(m)].out] = true;
    }
    const auto spare = std::find_if(inputs.begin(), inputs.end(), [&](VarId v) {
      return p_.vars[v].shape == p_.vars[out].shape && !view_.writers(v).empty() &&
             !p_.vars[v].persistable && !ReadOutside(view_, context_, v, group);
    });
    if (spare != inputs.end()) std::iter_swap(inputs.begin(), spare);
    return inputs;
  }

  ir::Program& p_;
  const PassContext& context_;
  const GraphView& view_;
  const OrderGraph& order_;
  const std::vector<ElementOp>& elements_;
  std::vector<int> node_of_;
  std::vector<ir::Op> nodes_;  // fused operators
};

}  // namespace

bool ReadOutside(const GraphView& view, const PassContext& context, VarId v,
                 const std::vector<int>& group) {
  if (context.fetched.count(v) > 0) return true;
  const auto& readers = view.readers(v);
  return std::any_of(readers.begin(), readers.end(),
                     [&](int r) { return !std::binary_search(group.begin(), group.end(), r); });
}

bool FuseGroups(ir::Program& program, const PassContext& context, const GraphView& view,
                const OrderGraph& order, const std::vector<ElementOp>& elements,
                const std::vector<FusedGroup>& groups) {
  return GroupFuser(program, context, view, order, elements).Run(groups);
}

}  // namespace heddle::passes

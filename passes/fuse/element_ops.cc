#include "passes/fuse/element_ops.h"

#include <algorithm>
#include <unordered_map>

#include "core/interrupts.h"
#include "core/programs/sub_block_slots.h"
#include "core/tile_ops.h"

namespace heddle::passes {
namespace {

using ir::VarId;

bool Empty(const std::vector<VarId>& slot) {
  return std::all_of(slot.begin(), slot.end(), [](VarId v) { return v == ir::kNoVar; });
}

// Records which variables have values that the plan computes ahead, in the order of the block's
// operators.
class KnownVars {
 public:
  KnownVars(const ir::Program& program, const GraphView& view) : program_(program), view_(view) {
    const ir::Op* const loop = view.block() == 0 ? nullptr : view.runner();
    if (loop == nullptr || !ir::RunsAgain(*loop->def)) return;
    in_loop_ = true;
    const auto changes = [&](const std::vector<std::vector<VarId>>& slots) {
      for (const auto& slot : slots)
        for (VarId v : slot)
          if (v != ir::kNoVar) set_[v] = false;
    };
    changes(loop->outputs);
    // The kernel writes recorded values to these.
    for (size_t s = 0; s < loop->def->inputs().size(); ++s)
      if (ir::IsSubBlockSlot(loop->def->inputs()[s])) changes({loop->inputs[s]});
  }

  void Set(VarId v, bool known) { set_[v] = known; }
  bool operator()(VarId v) const {
    const auto at = set_.find(v);
    if (at != set_.end()) return at->second;
    // In a loop's body, variables that no turn changes count as well.
    return (program_.vars[v].persistable && view_.NeverWritten(v)) ||
           (in_loop_ && view_.writers(v).empty());
  }

 private:
  const ir::Program& program_;
  const GraphView& view_;
  bool in_loop_ = false;
  std::unordered_map<VarId, bool> set_;
};

// Finds the operators that the plan computes ahead, since their operands never change, or once for
// all turns. Fused with others they would be computed again and again.
std::vector<bool> FindKnown(const ir::Program& program, const GraphView& view) {
  constexpr unsigned kNeverKnown = kRandom | kSideEffect | kCommunication | kReader | kControlFlow;
  KnownVars var_known(program, view);
  std::vector<bool> op_known;
  for (const ir::Op& op : program.blocks[static_cast<size_t>(view.block())].ops) {
    LookForInterrupt();
    bool known = (op.def->traits() & kNeverKnown) == 0 && !op.has_control_edges();
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      if (s < op.def->inputs().size() && (op.def->inputs()[s].flags & kNoBuffer)) continue;
      for (VarId v : op.inputs[s]) known = known && (v == ir::kNoVar || var_known(v));
    }
    for (const auto& slot : op.outputs)
      for (VarId v : slot)
        if (v != ir::kNoVar) var_known.Set(v, known && !program.vars[v].persistable);
    op_known.push_back(known);
  }
  return op_known;
}

// Whether the operator can be fused. Its result is written once. An operand may be written again:
// its next writer depends on its readers, and readers of the new value depend on that writer, so
// that no group reads both values.
bool Fusable(const ir::Program& program, const GraphView& view, int at, ElementOp* op) {
  const ir::Op& from =
      program.blocks[static_cast<size_t>(view.block())].ops[static_cast<size_t>(at)];
  const bool sum = from.type() == "sum";
  const TileOp* tile = sum ? FindTileOp("elementwise_add") : FindTileOp(from.type());
  if (tile == nullptr || !from.var_attrs.empty() || from.outputs[0].size() != 1) return false;
  op->out = from.outputs[0][0];
  for (size_t s = 1; s < from.outputs.size(); ++s)
    if (!Empty(from.outputs[s])) return false;
  if (op->out == ir::kNoVar || !view.SingleWriter(op->out, true)) return false;
  const DType dtype = program.vars[op->out].dtype;
  if (tile->make(dtype) == nullptr || !program.vars[op->out].shape.known_rank()) return false;
  for (int r : view.readers(op->out))
    if (r <= at) return false;
  const size_t operands = sum ? 1 : static_cast<size_t>(tile->operands);
  for (size_t s = 0; s < from.inputs.size(); ++s) {
    if (s >= operands) {
      if (!Empty(from.inputs[s]) && !(from.def->inputs()[s].flags & kNoBuffer)) return false;
      continue;
    }
    if (!sum && from.inputs[s].size() != 1) return false;
    op->operands.insert(op->operands.end(), from.inputs[s].begin(), from.inputs[s].end());
  }
  if (op->operands.size() < (sum ? 2u : 1u)) return false;
  for (VarId v : op->operands) {
    if (v == ir::kNoVar || program.vars[v].kind != ir::VarKind::kTensor ||
        program.vars[v].dtype != dtype)
      return false;
    if (sum && !(program.vars[v].shape == program.vars[op->out].shape)) return false;
  }
  if (sum) return true;
  TileStep step;
  Floats values;
  return MakeTileStep(*from.def, from.attrs, dtype, &step).ok() &&
         PackNumbers(*from.def, from.attrs, &values);
}

// Whether an attribute has the value that it has where nothing is said.
bool IsDefault(const ir::Op& op, const char* attribute) {
  const int at = op.def->FindAttr(attribute);
  return at < 0 || op.attrs[static_cast<size_t>(at)] ==
                       op.def->attrs()[static_cast<size_t>(at)].default_value;
}

// The number of trailing dimensions that the reduction reduces; 0: it reduces others, or is of
// another kind than that of fused rows.
int TrailingAxes(const ir::Op& op, int rank) {
  if (!IsDefault(op, "in_double") || !IsDefault(op, "no_axes")) return 0;
  const int dim = op.def->FindAttr("dim"), all = op.def->FindAttr("reduce_all");
  const auto& axes = std::get<Ints>(op.attrs[static_cast<size_t>(dim)]);
  if (axes.empty() || std::get<bool>(op.attrs[static_cast<size_t>(all)])) return rank;
  uint32_t mask = 0;
  for (const int64_t axis : axes) {
    if (axis < -rank || axis >= rank) return 0;
    mask |= 1u << (axis < 0 ? axis + rank : axis);
  }
  int count = 0;
  while (count < rank && (mask >> (rank - 1 - count) & 1u) != 0) ++count;
  return mask >> (rank - count) << (rank - count) == mask ? count : 0;
}

// Whether the operator computes one float tensor of known rank from its first input alone, of the
// same dtype, and has no other inputs. Sets the operand and the result.
bool IsOfOneTensor(const ir::Program& program, const GraphView& view, int at, ElementOp* op) {
  const ir::Op& from =
      program.blocks[static_cast<size_t>(view.block())].ops[static_cast<size_t>(at)];
  if (!from.var_attrs.empty() || from.inputs[0].size() != 1 || from.outputs[0].size() != 1)
    return false;
  for (size_t s = 1; s < from.inputs.size(); ++s)
    if (!Empty(from.inputs[s])) return false;
  const VarId x = from.inputs[0][0];
  op->out = from.outputs[0][0];
  if (x == ir::kNoVar || op->out == ir::kNoVar || !view.SingleWriter(op->out, true)) return false;
  for (int r : view.readers(op->out))
    if (r <= at) return false;
  const ir::Var &in = program.vars[x], &out = program.vars[op->out];
  if (in.kind != ir::VarKind::kTensor || in.dtype != out.dtype || !in.shape.known_rank() ||
      !out.shape.known_rank() || (in.dtype != DType::kF32 && in.dtype != DType::kF64))
    return false;
  op->operands = {x};
  return true;
}

// Whether the operator reduces trailing dimensions.
bool ReducesRows(const ir::Program& program, const GraphView& view, int at, ElementOp* op) {
  const ir::Op& from =
      program.blocks[static_cast<size_t>(view.block())].ops[static_cast<size_t>(at)];
  const std::string_view type = from.type();
  if (type != "reduce_sum" && type != "reduce_mean" && type != "reduce_max" && type != "reduce_min")
    return false;
  if (!IsOfOneTensor(program, view, at, op)) return false;
  op->axes = TrailingAxes(from, program.vars[op->operands[0]].shape.rank());
  return op->axes > 0;
}

// Whether the operator is a reshape whose shape is in its attribute.
bool Reshapes(const ir::Program& program, const GraphView& view, int at, ElementOp* op) {
  const ir::Op& from =
      program.blocks[static_cast<size_t>(view.block())].ops[static_cast<size_t>(at)];
  if (from.type() != "reshape2" || from.Attr<bool>("literal_zero") ||
      !IsOfOneTensor(program, view, at, op))
    return false;
  for (size_t s = 1; s < from.outputs.size(); ++s)  // XShape
    for (const VarId v : from.outputs[s])
      if (v != ir::kNoVar && (!view.readers(v).empty() || !view.SingleWriter(v, true)))
        return false;
  op->views = true;
  const int shape = from.def->FindAttr("shape");
  return std::get<Ints>(from.attrs[static_cast<size_t>(shape)]).size() ==
         static_cast<size_t>(program.vars[op->out].shape.rank());
}

}  // namespace

std::vector<ElementOp> FindElementOps(const ir::Program& program, const GraphView& view,
                                      WithElementOps with) {
  const std::vector<bool> known = FindKnown(program, view);
  std::vector<ElementOp> ops(known.size());
  for (size_t i = 0; i < ops.size(); ++i)
    ops[i].fusable = !known[i] && (Fusable(program, view, static_cast<int>(i), &ops[i]) ||
                                   (with == WithElementOps::kReductions &&
                                    ReducesRows(program, view, static_cast<int>(i), &ops[i])) ||
                                   (with == WithElementOps::kReshapes &&
                                    Reshapes(program, view, static_cast<int>(i), &ops[i])));
  return ops;
}

}  // namespace heddle::passes

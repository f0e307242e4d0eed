// Loops carry variables in the layout in which their bodies compute.
//
// channels_last leaves a body that begins with a transpose of a carried variable and ends with the
// inverse transpose of its next value. Then the loop carries the transposed variable instead: both
// transposes are executed once, before and after the loop, and not in each turn.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "passes/nested_blocks.h"
#include "passes/pass.h"
#include "passes/places.h"
#include "passes/position_lists.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

bool IsTranspose(const ir::Op& op) {
  return (op.type() == "transpose2" || op.type() == "transpose") && op.var_attrs.empty() &&
         !op.Attr<Ints>("axis").empty() && !op.has_control_edges();
}

bool AreInverse(const ir::Op& a, const ir::Op& b) {
  const Ints &p = a.Attr<Ints>("axis"), &q = b.Attr<Ints>("axis");
  if (p.size() != q.size()) return false;
  for (size_t i = 0; i < p.size(); ++i) {
    const auto at = static_cast<size_t>(p[i]);
    if (p[i] < 0 || at >= q.size() || q[at] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// A carried variable and the positions of the body's operators that change its layout.
struct Carried {
  VarId var = kNoVar;
  size_t enter = 0;  // transposes the variable; no other operator reads it
  size_t leave = 0;  // transposes its next value back
  size_t last = 0;   // writes the result to the variable: an assign, or `leave` itself
};

class LayoutCarrier {
 public:
  LayoutCarrier(ir::Program& program, PassContext& context)
      : p_(program),
        context_(context),
        runs_(program.blocks.size(), 0),
        read_(program.vars.size(), false) {
    for (VarId v : context.fetched) read_[v] = true;
    for (const ir::Block& block : p_.blocks) {
      ops_ += block.ops.size();
      for (const ir::Op& op : block.ops) {
        ForEachSubBlock(op, [&](int sub) { ++runs_[static_cast<size_t>(sub)]; });
        for (const auto& slot : op.inputs)
          for (VarId v : slot)
            if (v != kNoVar) read_[v] = true;
      }
    }
  }

  bool Run() {
    bool changed = false;
    // Inner loops first: transposes that they move out may be at both ends of an outer body.
    for (size_t b = p_.blocks.size(); b-- > 0;)
      for (size_t at = 0; at < p_.blocks[b].ops.size(); ++at)
        for (std::optional<Carried> carried; (carried = Find(p_.blocks[b].ops[at])); changed = true)
          Move(*carried, &p_.blocks[b], &at);
    return changed;
  }

 private:
  // Whether the operator is a loop without a gradient, whose body no other operator runs.
  bool IsLoop(const ir::Op& op) const {
    if (op.type() != "while" || op.has_control_edges() || !op.var_attrs.empty()) return false;
    const std::vector<int> bodies = op.SubBlocks();
    if (bodies.size() != 1 || runs_[static_cast<size_t>(bodies[0])] != 1) return false;
    for (VarId steps : op.Out("StepScopes"))
      if (steps != kNoVar && read_[steps]) return false;
    return true;
  }

  std::optional<Carried> Find(const ir::Op& loop) {
    if (!IsLoop(loop)) return std::nullopt;
    const int body = loop.SubBlocks()[0];
    const auto& ops = p_.blocks[static_cast<size_t>(body)].ops;
    if (std::none_of(ops.begin(), ops.end(), IsTranspose)) return std::nullopt;
    if (looks_ >= kMostLooks) return std::nullopt;
    looks_ += ops_;
    VersionView view(p_, context_.fetched);
    view.Enter(body);
    for (size_t at = 0; at < ops.size(); ++at) {
      LookForInterrupt();
      if (!IsTranspose(ops[at])) continue;
      const Carried carried{.var = OnlyIn(ops[at], "X"), .enter = at};
      if (carried.var == kNoVar || OnlyIn(loop, "Condition") == carried.var) continue;
      if (auto whole = Complete(view, ops, body, carried)) return whole;
    }
    return std::nullopt;
  }

  // Finds the operators that give the variable its next value.
  std::optional<Carried> Complete(const VersionView& view, const std::vector<ir::Op>& ops, int body,
                                  Carried c) const {
    const ir::Var& var = p_.vars[c.var];
    const auto reads = view.reads(c.var), writes = view.writes(c.var);
    if (var.block == body || var.kind != ir::VarKind::kTensor || var.persistable ||
        reads.size() != 1 || writes.size() != 1 || static_cast<size_t>(writes[0]) <= c.enter ||
        OtherOutputsAreRead(ops[c.enter]))
      return std::nullopt;
    c.leave = c.last = static_cast<size_t>(writes[0]);
    const VarId turned = OnlyOut(ops[c.enter], "Out");
    if (turned == kNoVar) return std::nullopt;
    if (ops[c.last].type() == "assign") {
      const VarId next = OnlyIn(ops[c.last], "X");
      const int leave = next == kNoVar ? -1 : view.WriterBefore(next, writes[0]);
      if (leave < 0 || ops[c.last].has_control_edges() || !IsReadBefore(view, turned, c))
        return std::nullopt;
      c.leave = static_cast<size_t>(leave);
    } else if (!IsCarriedItself(view, turned, c) || OtherOutputsAreRead(ops[c.last])) {
      return std::nullopt;
    }
    const ir::Op& leave = ops[c.leave];
    if (!IsTranspose(leave) || !AreInverse(ops[c.enter], leave) ||
        !SamePlace(ops[c.enter], leave) || !SamePlace(ops[c.enter], ops[c.last]))
      return std::nullopt;
    const VarId from = OnlyIn(leave, "X");
    const bool fits = c.leave == c.last
                          ? from == turned
                          : from != kNoVar && view.Same(from, static_cast<int>(c.leave), writes[0]);
    return fits ? std::optional(c) : std::nullopt;
  }

  bool OtherOutputsAreRead(const ir::Op& transpose) const {
    for (size_t slot = 0; slot < transpose.outputs.size(); ++slot)
      if (static_cast<int>(slot) != transpose.def->FindOutput("Out"))
        for (VarId v : transpose.outputs[slot])
          if (v != kNoVar && read_[v]) return true;
    return false;
  }
  // Whether the first transpose's result is read before the assignment, by operators of the body
  // alone.
  static bool IsReadBefore(const VersionView& view, VarId turned, const Carried& c) {
    if (view.writes(turned).size() != 1) return false;
    const auto readers = view.Readers(turned, static_cast<int>(c.enter));
    return readers && std::all_of(readers->begin(), readers->end(),
                                  [&c](int at) { return static_cast<size_t>(at) < c.last; });
  }
  // Whether the body updates one transposed variable of its own, which at its end holds what the
  // first transpose would make in the next turn: an inner loop carries it.
  bool IsCarriedItself(const VersionView& view, VarId turned, const Carried& c) const {
    const auto writes = view.writes(turned), reads = view.reads(turned);
    const ir::Var& var = p_.vars[turned];
    const auto enter = static_cast<int>(c.enter), last = static_cast<int>(c.last);
    return var.block == view.block() && !var.persistable && var.kind == ir::VarKind::kTensor &&
           context_.fetched.count(turned) == 0 && writes.front() == enter && writes.back() < last &&
           reads.front() > enter;
  }

  // `at`: the loop's position in the block, which increases by one.
  void Move(const Carried& c, ir::Block* block, size_t* at) {
    ir::Op& loop = block->ops[*at];
    auto& ops = p_.blocks[static_cast<size_t>(loop.SubBlocks()[0])].ops;
    const VarId turned = OnlyOut(ops[c.enter], "Out");
    const VarId carried = NewLike(turned, c.var, block->id);
    ir::Op before = Alone(ops[c.enter], c.var, carried);
    ir::Op behind = Alone(ops[c.leave], carried, c.var);
    for (ir::Op* op : {&before, &behind})
      if (op->device.empty()) op->device = loop.device;
    const auto place = [&ops](size_t k) { return ops.begin() + static_cast<std::ptrdiff_t>(k); };
    if (c.leave == c.last)
      ops.erase(place(c.last));
    else
      SetOnly(&ops[c.last], "X", "Out", OnlyIn(ops[c.leave], "X"), carried);
    ops.erase(place(c.enter));
    for (int inner : NestedBlocks(p_, loop)) {
      for (ir::Op& op : p_.blocks[static_cast<size_t>(inner)].ops)
        for (auto* slots : {&op.inputs, &op.outputs})
          for (auto& slot : *slots) std::replace(slot.begin(), slot.end(), turned, carried);
    }
    for (auto* slots : {&loop.inputs, &loop.outputs})
      for (auto& slot : *slots) std::replace(slot.begin(), slot.end(), c.var, carried);
    const auto here = block->ops.begin() + static_cast<std::ptrdiff_t>(*at);
    block->ops.insert(block->ops.insert(here, std::move(before)) + 2, std::move(behind));
    ++*at;
  }
  VarId NewLike(VarId like, VarId named, int block) {
    ir::Var var = p_.vars[like];
    var.name = p_.FreshName(p_.vars[named].name + ".carried");
    var.block = block;
    return p_.AddVar(std::move(var));
  }
  static void SetOnly(ir::Op* op, const char* in, const char* out, VarId from, VarId to) {
    op->inputs[static_cast<size_t>(op->def->FindInput(in))] = {from};
    op->outputs[static_cast<size_t>(op->def->FindOutput(out))] = {to};
  }
  // A transpose like this one, with its result as the only output.
  static ir::Op Alone(const ir::Op& like, VarId from, VarId to) {
    ir::Op op = ir::MakeOp(*FindOp("transpose2"));
    op.attrs[static_cast<size_t>(op.def->FindAttr("axis"))] = like.Attr<Ints>("axis");
    op.index = like.index;
    op.call_stack = like.call_stack;
    op.device = like.device;
    SetOnly(&op, "X", "Out", from, to);
    return op;
  }

  ir::Program& p_;
  PassContext& context_;
  std::vector<int> runs_;   // per block: the number of operators that run it
  std::vector<bool> read_;  // per variable of the original program: it is read
  // Each loop whose body transposes costs one visit of all operators. After this many visits, the
  // remaining loops stay as they are.
  static constexpr size_t kMostLooks = size_t{1} << 24;
  size_t ops_ = 0, looks_ = 0;
};

Result<bool> RunCarryLayout(ir::Program& program, PassContext& context) {
  return LayoutCarrier(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(carry_layout) {
  pass.doc = "moves transposes of what a loop carries out of the loop";
  pass.level = 2;
  pass.before = "while: { b = transpose2(a); c = conv2d(b), NHWC; d = transpose2(c); a = d }";
  pass.after = "b = transpose2(a); while: { c = conv2d(b), NHWC; b = c }; a = transpose2(b)";
  pass.refuses =
      "loops with gradients; variables that the body reads or writes elsewhere, too, or whose two "
      "transposes are not each other's inverse; loops behind those for which 16,777,216 operators "
      "have been looked at";
  pass.seeks = OfTypes({"transpose2", "transpose"});
  pass.run = RunCarryLayout;
}

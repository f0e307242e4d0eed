#include "passes/verifier.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/error.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

std::string Where(int block, size_t i, const ir::Op& op) {
  return StrCat("block ", block, ", operator ", i, " (", op.type(), ")");
}

bool SubBlockSlot(const SlotDef& slot) { return slot.name.starts_with("sub_block:"); }

// Visits a program's operators in order and records which variables have a value.
class DefinitionWalk {
 public:
  explicit DefinitionWalk(const ir::Program& p)
      : defined(p.vars.size(), false), p_(p), visited_(p.blocks.size(), false) {
    for (VarId v = 0; v < p.vars.size(); ++v)
      defined[v] =
          p.vars[v].persistable || p.vars[v].input || p.vars[v].kind != ir::VarKind::kTensor;
    for (const ir::Port& f : p.feeds)
      if (f.var != kNoVar) defined[f.var] = true;
  }

  // Calls missing(block, position, op, variable) for each read of a variable without a value.
  template <typename Fn>
  void Run(Fn&& missing) {
    Visit(0, missing);
  }

  std::vector<bool> defined;

 private:
  template <typename Fn>
  void Visit(int block, Fn& missing) {
    visited_[block] = true;
    const auto& ops = p_.blocks[block].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      for (const auto& slot : ops[i].inputs)
        for (VarId v : slot)
          if (v != kNoVar && !defined[v]) missing(block, i, ops[i], v);
      if (ops[i].def->has(kControlFlow)) {
        DefineGiven(ops[i]);
        for (int sub : ops[i].SubBlocks())
          if (!visited_[sub]) Visit(sub, missing);
      }
      for (const auto& slot : ops[i].outputs)
        for (VarId v : slot)
          if (v != kNoVar) defined[v] = true;
    }
  }

  // Defines the variables that the operator writes for its blocks
  // (core/programs/sub_block_slots.h).
  void DefineGiven(const ir::Op& op) {
    for (size_t s = 0; s < op.def->outputs().size(); ++s)
      if (SubBlockSlot(op.def->outputs()[s]))
        for (VarId v : op.outputs[s])
          if (v != kNoVar) defined[v] = true;
  }

  const ir::Program& p_;
  std::vector<bool> visited_;
};

// Whether the operator requires the variable. (Operators that run blocks list what these read.)
bool IsRequired(const ir::Op& op, VarId v) {
  if (op.def->has(kControlFlow)) return false;
  const auto& slots = op.def->inputs();
  for (size_t s = 0; s < op.inputs.size(); ++s)
    if ((s >= slots.size() || !(slots[s].flags & kOptional)) &&
        std::find(op.inputs[s].begin(), op.inputs[s].end(), v) != op.inputs[s].end())
      return true;
  return false;
}

// Checks single operators, variables and blocks.
class ShapeOfProgram {
 public:
  explicit ShapeOfProgram(const ir::Program& p) : p_(p) {}

  Status Check() const {
    if (p_.blocks.empty()) return Internal("the program has no block");
    for (size_t b = 0; b < p_.blocks.size(); ++b) {
      const ir::Block& block = p_.blocks[b];
      if (block.id != static_cast<int>(b)) return Internal("block ", b, " has id ", block.id);
      if (b > 0 && (block.parent < 0 || block.parent >= static_cast<int>(b)))
        return Internal("block ", b, " has parent ", block.parent);
      for (size_t i = 0; i < block.ops.size(); ++i)
        HEDDLE_RETURN_IF_ERROR(CheckOp(static_cast<int>(b), i, block.ops[i]));
    }
    for (VarId v = 0; v < p_.vars.size(); ++v)
      if (p_.vars[v].block < 0 || p_.vars[v].block >= static_cast<int>(p_.blocks.size()))
        return Internal("variable '", p_.vars[v].name, "' is of block ", p_.vars[v].block,
                        ", which does not exist");
    for (const auto* ports : {&p_.feeds, &p_.fetches})
      for (const ir::Port& f : *ports)
        if (f.var != kNoVar && f.var >= p_.vars.size())
          return Internal("a feed or fetch names variable ", f.var, ", which does not exist");
    if (const std::string wrong = ir::FindBrokenControl(p_); !wrong.empty()) return Internal(wrong);
    return CheckNesting();
  }

 private:
  Status CheckOp(int block, size_t i, const ir::Op& op) const {
    if (op.def == nullptr) return Internal("block ", block, ", operator ", i, " has no definition");
    const OpDef& def = *op.def;
    if (op.inputs.size() != def.inputs().size() + op.var_attrs.size() ||
        op.outputs.size() != def.outputs().size() || op.attrs.size() != def.attrs().size())
      return Internal(Where(block, i, op), ": the numbers of slots or attributes do not fit");
    for (size_t a = 0; a < op.attrs.size(); ++a)
      if (op.attrs[a].index() != def.attrs()[a].default_value.index())
        return Internal(Where(block, i, op), ": attribute '", def.attrs()[a].name,
                        "' is of the wrong type");
    for (int a : op.var_attrs)
      if (a < 0 || a >= static_cast<int>(op.attrs.size()))
        return Internal(Where(block, i, op), ": a variable stands for attribute ", a);
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      const SlotDef* slot = s < def.inputs().size() ? &def.inputs()[s] : nullptr;
      HEDDLE_RETURN_IF_ERROR(CheckSlot(block, i, op, slot, op.inputs[s]));
      if (slot != nullptr && op.inputs[s].empty() && !(slot->flags & (kOptional | kList)))
        return Internal(Where(block, i, op), ": misses input '", slot->name, "'");
    }
    for (size_t s = 0; s < op.outputs.size(); ++s)
      HEDDLE_RETURN_IF_ERROR(CheckSlot(block, i, op, &def.outputs()[s], op.outputs[s]));
    for (int sub : op.SubBlocks())
      if (sub <= 0 || sub >= static_cast<int>(p_.blocks.size()))
        return Internal(Where(block, i, op), ": sub-block ", sub, " does not exist");
    return Status::Ok();
  }

  Status CheckSlot(int block, size_t i, const ir::Op& op, const SlotDef* slot,
                   const std::vector<VarId>& vars) const {
    if (slot != nullptr && !(slot->flags & kList) && vars.size() > 1 && !SubBlockSlot(*slot))
      return Internal(Where(block, i, op), ": slot '", slot->name, "' takes one variable, not ",
                      vars.size());
    for (VarId v : vars) {
      if (v == kNoVar) continue;
      if (v >= p_.vars.size())
        return Internal(Where(block, i, op), ": names variable ", v, ", which does not exist");
      if ((slot == nullptr || !SubBlockSlot(*slot)) && !Visible(block, p_.vars[v].block))
        return Internal(Where(block, i, op), ": '", p_.vars[v].name, "' of block ",
                        p_.vars[v].block, " cannot be seen here");
    }
    return Status::Ok();
  }

  // Whether variables of block `outer` are visible in `block`.
  bool Visible(int block, int outer) const {
    if (block == outer || outer == 0) return true;
    // A gradient block also sees the variables of the block whose gradient it is: two ways, which
    // may meet.
    std::vector<int> open = {block};
    std::unordered_set<int> seen;
    while (!open.empty()) {
      const int b = open.back();
      open.pop_back();
      if (b < 0 || !seen.insert(b).second) continue;
      if (b == outer) return true;
      open.push_back(p_.blocks[b].parent);
      if (const int f = p_.blocks[b].forward_block; f < b) open.push_back(f);
    }
    return false;
  }

  Status CheckNesting() const {
    std::vector<int> state(p_.blocks.size(), 0);  // 1: being visited, 2: done
    bool cycle = false;
    const auto visit = [&](auto& self, int b) -> void {
      state[b] = 1;
      for (const ir::Op& op : p_.blocks[b].ops) {
        if (!op.def->has(kControlFlow)) continue;
        for (int sub : op.SubBlocks()) {
          cycle = cycle || state[sub] == 1;
          if (state[sub] == 0) self(self, sub);
        }
      }
      state[b] = 2;
    };
    visit(visit, 0);
    return cycle ? Internal("a block runs itself") : Status::Ok();
  }

  const ir::Program& p_;
};

// The marks of the program's control edges: those that operators set, and those that they wait for.
std::set<std::pair<bool, int64_t>> ControlMarks(const ir::Program& p) {
  std::set<std::pair<bool, int64_t>> marks;
  for (const ir::Block& block : p.blocks) {
    for (const ir::Op& op : block.ops) {
      if (!op.has_control_edges()) continue;
      for (const int64_t mark : op.hints->marks) marks.emplace(false, mark);
      for (const int64_t mark : op.hints->after) marks.emplace(true, mark);
    }
  }
  return marks;
}

// Operators with a control edge between them may become one: then nobody waits for the mark.
Status CheckControl(const ir::Program& before, const ir::Program& after) {
  const auto is = ControlMarks(after);
  for (const auto& [waited, mark] : ControlMarks(before))
    if (!waited && !is.contains({false, mark}))
      return Internal("the operator with control mark ", mark, " has been taken away");
  return Status::Ok();
}

std::vector<const OpDef*> Effects(const ir::Program& p) {
  std::vector<const OpDef*> defs;
  for (const ir::Block& b : p.blocks)
    for (const ir::Op& op : b.ops)
      if (op.def->traits() & (kSideEffect | kCommunication)) defs.push_back(op.def);
  std::sort(defs.begin(), defs.end());
  return defs;
}

Status CheckKept(const ir::Program& before, const ir::Program& after) {
  if (after.vars.size() < before.vars.size()) return Internal("variables have been taken away");
  for (VarId v = 0; v < before.vars.size(); ++v) {
    const ir::Var &was = before.vars[v], &is = after.vars[v];
    if (is.name != was.name || is.block != was.block)
      return Internal("variable '", was.name, "' is now '", is.name, "' of block ", is.block);
    if (is.kind != was.kind || is.persistable != was.persistable)
      return Internal("variable '", was.name, "' has become another kind of variable");
    if (is.dtype != was.dtype && was.dtype != DType::kUnknown)
      return Internal("variable '", was.name, "' was ", Name(was.dtype), ", is now ",
                      Name(is.dtype));
  }
  return Status::Ok();
}

}  // namespace

std::string FindHole(const ir::Program& program, const std::set<VarId>& fed) {
  const auto is_hole = [](const SlotDef& slot, const std::vector<VarId>& vars) {
    return !(slot.flags & (kOptional | kList)) && (vars.empty() || vars[0] == kNoVar);
  };
  for (const ir::Block& block : program.blocks) {
    for (size_t i = 0; i < block.ops.size(); ++i) {
      const ir::Op& op = block.ops[i];
      const OpDef& def = *op.def;
      for (size_t s = 0; s < def.inputs().size(); ++s)
        if (is_hole(def.inputs()[s], op.inputs[s]))
          return StrCat(Where(block.id, i, op), " misses input '", def.inputs()[s].name, "'");
      // Gradients that are not used are not written.
      if (!def.outputs().empty() && !op.type().ends_with("_grad") && !def.has(kControlFlow) &&
          is_hole(def.outputs()[0], op.outputs[0]))
        return StrCat(Where(block.id, i, op), " misses output '", def.outputs()[0].name, "'");
    }
  }
  std::string unwritten;
  DefinitionWalk walk(program);
  for (VarId v : fed) walk.defined[v] = true;
  walk.Run([&](int block, size_t i, const ir::Op& op, VarId v) {
    if (unwritten.empty() && IsRequired(op, v))
      unwritten =
          StrCat(Where(block, i, op), " reads '", program.vars[v].name, "' before it is written");
  });
  return unwritten;
}

Verifier::Verifier(std::shared_ptr<const ir::Program> original, const std::set<VarId>& fetched)
    : original_(std::move(original)),
      fetched_(fetched),
      undefined_(original_->vars.size(), false),
      effects_(Effects(*original_)) {
  DefinitionWalk walk(*original_);
  walk.Run([&](int, size_t, const ir::Op&, VarId v) { undefined_[v] = true; });
  never_ = walk.defined;
  never_.flip();
}

Status Verifier::Check(const ir::Program& program) const {
  HEDDLE_RETURN_IF_ERROR(ShapeOfProgram(program).Check());
  HEDDLE_RETURN_IF_ERROR(CheckKept(*original_, program));
  HEDDLE_RETURN_IF_ERROR(CheckControl(*original_, program));
  DefinitionWalk walk(program);
  Status status;
  walk.Run([&](int block, size_t i, const ir::Op& op, VarId v) {
    if (!status.ok() || (v < undefined_.size() && undefined_[v])) return;
    status =
        Internal(Where(block, i, op), ": reads '", program.vars[v].name, "' before it is written");
  });
  HEDDLE_RETURN_IF_ERROR(status);
  for (VarId v : fetched_)
    if (!walk.defined[v] && !never_[v])
      return Internal("nothing writes '", program.vars[v].name, "', which is fetched");
  const std::vector<const OpDef*> effects = Effects(program);
  if (!std::includes(effects.begin(), effects.end(), effects_.begin(), effects_.end()))
    return Internal("an operator with side effects has been taken away");
  return Status::Ok();
}

}  // namespace heddle::passes

#include "core/programs/op_check.h"

#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "core/operands/slot_kinds.h"
#include "core/programs/sub_block_slots.h"

namespace heddle::ir {

bool IsDeclared(const Var& var) {
  return var.kind != VarKind::kTensor || var.dtype != DType::kUnknown || var.shape.known_rank();
}

namespace {

bool NamesVariable(const std::vector<VarId>& slot) {
  return std::any_of(slot.begin(), slot.end(), [](VarId v) { return v != kNoVar; });
}

// Calls fn(slot definition, variable) for every operand in `slots`.
template <typename Fn>
void EachOperand(const std::vector<SlotDef>& defs, const std::vector<std::vector<VarId>>& slots,
                 Fn&& fn) {
  for (size_t s = 0; s < defs.size(); ++s)
    for (VarId v : slots[s])
      if (v != kNoVar) fn(defs[s], v);
}

// The slot flag for variables of this kind, which is not kTensor.
unsigned KindFlag(VarKind kind) {
  switch (kind) {
    case VarKind::kRows:
      return kTakesRows;
    case VarKind::kArray:
      return kTakesArray;
    case VarKind::kScopes:
      return kRecord;
    default:
      return kTakesOther;
  }
}

const char* NameOf(VarKind kind) {
  switch (kind) {
    case VarKind::kTensor:
      return "a tensor";
    case VarKind::kRows:
      return "selected rows";
    case VarKind::kArray:
      return "a tensor array";
    case VarKind::kScopes:
      return "a record of steps";
    case VarKind::kFeedHolder:
    case VarKind::kFetchHolder:
      return "a holder of feeds or fetches";
    default:
      return "no tensor";
  }
}

std::string KindsOf(unsigned flags) {
  if (flags & kRecord) return "a record of steps";
  std::string text = flags & kTakesNoTensor ? "" : "a tensor";
  const auto add = [&](unsigned flag, const char* kind) {
    if (flags & flag) text += StrCat(text.empty() ? "" : " or ", kind);
  };
  add(kTakesRows, "selected rows");
  add(kTakesArray, "a tensor array");
  add(kTakesOther, "texts, a table, a reader or a sparse tensor");
  return text;
}

bool Takes(const SlotDef& slot, const Var& var) {
  if (!IsDeclared(var)) return true;
  if (var.kind == VarKind::kTensor) return (slot.flags & kTakesNoTensor) == 0;
  return (slot.flags & KindFlag(var.kind)) != 0;
}

// Whether some input is of this kind, or may be since it is not declared.
bool HasInputOf(VarKind kind, const Program& program, const Op& op) {
  bool has = false;
  EachOperand(op.def->inputs(), op.inputs, [&](const SlotDef& slot, VarId v) {
    const Var& var = program.vars[v];
    has = has || ((slot.flags & KindFlag(kind)) && (var.kind == kind || !IsDeclared(var)));
  });
  return has;
}

void CheckKinds(const Program& program, int block, const Op& op, const OpProblem& problem) {
  const bool runs_blocks = op.def->has(kControlFlow);
  const auto check = [&](const char* kind, bool output) {
    return [&, kind, output](const SlotDef& slot, VarId v) {
      // Operators that run blocks list whatever their blocks touch.
      if (IsSubBlockSlot(slot) || (runs_blocks && (slot.flags & kList))) return;
      const Var& var = program.vars[v];
      // Operators on selected rows return selected rows.
      if (output && var.kind == VarKind::kRows && HasInputOf(var.kind, program, op)) return;
      std::string wanted;
      if (!Takes(slot, var)) wanted = KindsOf(slot.flags);
      // An output that may be a tensor or a tensor array is an array only if an input is one.
      else if (output && var.kind == VarKind::kArray && !(slot.flags & kTakesNoTensor) &&
               !HasInputOf(var.kind, program, op))
        wanted = "a tensor, since no input is a tensor array,";
      else
        return;
      problem(block, op,
              StrCat(kind, " '", slot.name, "' is variable '", var.name, "', declared as ",
                     NameOf(var.kind), "; ", wanted, " is expected"));
    };
  };
  EachOperand(op.def->inputs(), op.inputs, check("input", false));
  EachOperand(op.def->outputs(), op.outputs, check("output", true));
}

}  // namespace

void CheckOperands(const Program& program, int block, const Op& op, const OpProblem& problem) {
  const auto missing = [&](const char* kind, const std::vector<SlotDef>& defs, const auto& slots) {
    for (size_t s = 0; s < defs.size(); ++s) {
      if ((defs[s].flags & kOptional) || IsSubBlockSlot(defs[s])) continue;
      if (slots[s].empty())
        problem(block, op, StrCat("misses ", kind, " '", defs[s].name, "'"));
      else if (!(defs[s].flags & kList) && !NamesVariable(slots[s]))
        problem(block, op,
                StrCat(kind, " '", defs[s].name, "' is required, but names no variable"));
    }
  };
  missing("input", op.def->inputs(), op.inputs);
  missing("output", op.def->outputs(), op.outputs);
  CheckKinds(program, block, op, problem);
  if (op.def->has(kControlFlow)) return;  // its lists name what its blocks write
  constexpr size_t kFew = 16;
  std::vector<VarId> few;             // searched linearly
  std::unordered_set<VarId> outputs;  // used for more
  EachOperand(op.def->outputs(), op.outputs, [&](const SlotDef& slot, VarId v) {
    if (few.size() == kFew && outputs.empty()) outputs.insert(few.begin(), few.end());
    if (few.size() < kFew ? std::find(few.begin(), few.end(), v) != few.end() : outputs.contains(v))
      problem(block, op,
              StrCat("output '", slot.name, "' is variable '", program.vars[v].name,
                     "', which another output of it is, too"));
    if (few.size() < kFew)
      few.push_back(v);
    else
      outputs.insert(v);
  });
}

void CheckReserved(const Program& program, const OpProblem& problem) {
  std::vector<bool> record(program.vars.size(), false), no_data(program.vars.size(), false);
  bool any = false;
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      const auto mark = [&](const SlotDef& slot, VarId v) {
        if (slot.flags & kRecord) any = record[v] = true;
        if (slot.flags & kNoData) any = no_data[v] = true;
      };
      EachOperand(op.def->inputs(), op.inputs, mark);
      EachOperand(op.def->outputs(), op.outputs, mark);
    }
  }
  if (!any) return;
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      const bool runs_blocks = op.def->has(kControlFlow);
      const auto check = [&](const char* kind, unsigned allowed, const SlotDef& slot, VarId v) {
        // Operators that run blocks list whatever their blocks touch.
        if (runs_blocks && (slot.flags & kList)) return;
        const std::string& name = program.vars[v].name;
        if (record[v] && !(slot.flags & kRecord))
          problem(block.id, op,
                  StrCat(kind, " '", slot.name, "' is variable '", name,
                         "', which holds an operator's record of the blocks it ran, no value"));
        if (no_data[v] && !(slot.flags & allowed))
          problem(block.id, op,
                  StrCat(kind, " '", slot.name, "' is variable '", name,
                         "', which holds a shape without contents"));
      };
      EachOperand(op.def->inputs(), op.inputs,
                  [&](const SlotDef& slot, VarId v) { check("input", kNoBuffer, slot, v); });
      EachOperand(op.def->outputs(), op.outputs,
                  [&](const SlotDef& slot, VarId v) { check("output", kNoData, slot, v); });
    }
  }
}

}  // namespace heddle::ir

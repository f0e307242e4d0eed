#include "core/programs/sub_block_slots.h"

#include <algorithm>

namespace heddle::ir {
namespace {

constexpr std::string_view kPrefix = "sub_block:";
constexpr std::string_view kGrad = "@GRAD";

class Filler {
 public:
  Filler(Program& program, int block, size_t at)
      : p_(program), op_(program.blocks[block].ops[at]), sub_(FindSubBlock()) {}

  void Run() {
    if (sub_ < 0) return;
    for (const bool locals : {true, false}) {  // others may find the locals made first
      for (size_t s = 0; s < op_.def->inputs().size(); ++s)
        Fill(op_.def->inputs()[s].name, locals, &op_.inputs[s]);
      for (size_t s = 0; s < op_.def->outputs().size(); ++s)
        Fill(op_.def->outputs()[s].name, locals, &op_.outputs[s]);
    }
  }

 private:
  int FindSubBlock() const {
    const std::vector<int> subs = op_.SubBlocks();
    return subs.size() == 1 ? subs[0] : -1;
  }

  void Fill(std::string_view spec, bool locals, std::vector<VarId>* slot) {
    if (!spec.starts_with(kPrefix)) return;
    spec.remove_prefix(kPrefix.size());
    if (spec.starts_with("local(") != locals) return;
    const auto argument = [&](std::string_view function) {
      const size_t open = function.size() + 1;
      if (!spec.starts_with(function) || spec.size() <= open || spec[open - 1] != '(')
        return std::string_view();
      return spec.substr(open, spec.size() - open - 1);
    };
    slot->clear();
    if (spec == "carried" || spec == "kept") {
      *slot = Recorded(spec == "carried");
    } else if (spec == "arrays") {
      for (VarId v = 0; v < p_.vars.size(); ++v)
        if (p_.vars[v].kind == VarKind::kArray && Within(p_.vars[v].block, sub_))
          slot->push_back(v);
    } else if (const auto of_grad = argument("grad"); !of_grad.empty()) {
      for (const std::string& name : Names(of_grad))
        slot->push_back(name.empty() ? kNoVar : Local(name + std::string(kGrad)));
    } else if (const auto of_primal = argument("primal"); !of_primal.empty()) {
      for (const std::string& name : Names(of_primal))
        slot->push_back(p_.Find(sub_, name.substr(0, name.find(kGrad))));
    } else if (const auto of_given = argument("given"); !of_given.empty()) {
      for (const std::string& name : Names(of_given))
        slot->push_back(name.empty() ? kNoVar : p_.Find(sub_, name));
    } else if (const auto of_changing = argument("changing"); !of_changing.empty()) {
      const std::vector<bool> changing = Changing();
      for (const std::string& name : Names(of_changing)) {
        const VarId v = p_.Find(sub_, name);
        slot->push_back(v != kNoVar && v < changing.size() && changing[v] ? v : kNoVar);
      }
    } else if (const auto of_local = argument("local"); !of_local.empty()) {
      for (const std::string& name : Names(of_local))
        slot->push_back(name.empty() ? kNoVar : MakeLocal(name));
    } else {
      for (const std::string& name : Names(spec)) slot->push_back(p_.Find(sub_, name));
    }
  }

  // The names in a slot or an attribute; "" for an empty operand.
  std::vector<std::string> Names(std::string_view source) const {
    if (const int a = op_.def->FindAttr(source); a >= 0) return std::get<Strings>(op_.attrs[a]);
    const int in = op_.def->FindInput(source);
    const auto& vars = in >= 0 ? op_.inputs[in] : op_.outputs[op_.def->FindOutput(source)];
    std::vector<std::string> names;
    for (VarId v : vars) names.push_back(v == kNoVar ? "" : p_.vars[v].name);
    return names;
  }

  // Per variable, whether its value behind the sub-block may differ from run to run of it.
  std::vector<bool> Changing() const {
    std::vector<bool> written(p_.vars.size()), now(p_.vars.size()), changing(p_.vars.size());
    for (const Block& block : p_.blocks)
      if (Within(block.id, sub_))
        for (const Op& op : block.ops) Mark(op.outputs, &written);
    for (const Op& op : p_.blocks[sub_].ops) {
      constexpr unsigned kOwnWill = kRandom | kSideEffect | kCommunication | kReader | kControlFlow;
      bool changes = (op.def->traits() & kOwnWill) != 0;
      for (const auto& slot : op.inputs)
        for (VarId v : slot)
          if (v != kNoVar) changes = changes || changing[v] || (written[v] && !now[v]);
      for (const auto& slot : op.outputs)
        for (VarId v : slot) {
          if (v == kNoVar) continue;
          now[v] = true;
          const bool in_part = p_.vars[v].kind != VarKind::kTensor;  // arrays keep other items
          changing[v] = changes || in_part || p_.vars[v].persistable;
        }
      for (int inner : op.SubBlocks())
        for (const Block& block : p_.blocks)
          if (Within(block.id, inner))
            for (const Op& nested : block.ops) {
              Mark(nested.outputs, &now);
              Mark(nested.outputs, &changing);
            }
    }
    return changing;
  }
  // Block `b` is `outer` or stands inside it.
  bool Within(int b, int outer) const {
    while (b > 0 && b != outer) b = p_.blocks[b].parent;
    return b == outer;
  }
  VarId Local(const std::string& name) const {
    const VarId v = p_.Find(sub_, name);
    return v != kNoVar && p_.vars[v].block == sub_ ? v : kNoVar;
  }

  VarId MakeLocal(const std::string& name) {
    const VarId outer = p_.Find(sub_, name);
    if (outer != kNoVar && p_.vars[outer].block == sub_) return outer;
    Var var;
    if (outer != kNoVar) var = p_.vars[outer];
    var.name = name;
    var.block = sub_;
    var.shape = Shape::Unknown();
    var.persistable = false;
    const VarId inner = p_.AddVar(std::move(var));
    for (Block& block : p_.blocks) {
      if (!Within(block.id, sub_) && !InGradientOf(block.id, sub_)) continue;
      for (Op& op : block.ops)
        for (auto* slots : {&op.inputs, &op.outputs})
          for (auto& slot : *slots) Rename(name, inner, &slot);
    }
    return inner;
  }
  // Operands of that name that come from outside the sub-block are `inner` from now on.
  void Rename(const std::string& name, VarId inner, std::vector<VarId>* slot) const {
    for (VarId& v : *slot)
      if (v != kNoVar && p_.vars[v].name == name && !Within(p_.vars[v].block, sub_)) v = inner;
  }

  // Variables whose values of each step the gradient wants back.
  std::vector<VarId> Recorded(bool carried) const {
    const int forward = p_.blocks[sub_].forward_block >= 0 ? p_.blocks[sub_].forward_block : sub_;
    std::vector<bool> read(p_.vars.size()), written(p_.vars.size()), in_place(p_.vars.size());
    for (const Block& block : p_.blocks) {
      for (const Op& op : block.ops) {
        if (InGradientOf(block.id, forward)) {  // which may stand inside the forward block
          Mark(op.inputs, &read);
          continue;
        }
        if (!Within(block.id, forward)) continue;
        Mark(op.outputs, &written);
        if (block.id == forward) MarkInPlace(op, &in_place);
      }
    }
    std::vector<VarId> found;
    if (carried) {
      const int x = op_.def->FindInput("X");
      for (VarId v : op_.inputs[x])
        if (v != kNoVar && read[v] && written[v] && !in_place[v] && !p_.vars[v].persistable &&
            p_.vars[v].kind == VarKind::kTensor)
          found.push_back(v);
      return found;
    }
    for (VarId v = 0; v < p_.vars.size(); ++v)
      if (read[v] && p_.vars[v].block != 0 && Within(p_.vars[v].block, forward) &&
          !InGradientOf(p_.vars[v].block, forward))
        found.push_back(v);
    return found;
  }

  bool InGradientOf(int b, int forward) const {
    for (; b > 0; b = p_.blocks[b].parent)
      if (p_.blocks[b].forward_block == forward) return true;
    return false;
  }
  static void Mark(const std::vector<std::vector<VarId>>& slots, std::vector<bool>* marks) {
    for (const auto& slot : slots)
      for (VarId v : slot)
        if (v != kNoVar) (*marks)[v] = true;
  }
  static void MarkInPlace(const Op& op, std::vector<bool>* marks) {
    for (const auto& out : op.outputs)
      for (VarId v : out)
        for (const auto& in : op.inputs)
          if (v != kNoVar && std::find(in.begin(), in.end(), v) != in.end()) (*marks)[v] = true;
  }

  Program& p_;
  Op& op_;
  const int sub_;
};

}  // namespace

bool IsSubBlockSlot(const SlotDef& slot) { return slot.name.starts_with(kPrefix); }

bool HandsValues(const SlotDef& slot) {
  return IsSubBlockSlot(slot) && !slot.name.starts_with("sub_block:changing(");
}

bool IsRecordedSlot(const SlotDef& slot) {
  return slot.name == "sub_block:carried" || slot.name == "sub_block:kept";
}

bool SelectsOperand(const OpDef& def) {
  const int x = def.FindInput("X");
  constexpr unsigned kBranches = kList | kOptional | kAnyKind;
  return x >= 0 && (def.inputs()[x].flags & kBranches) == kBranches && def.FindInput("Mask") >= 0;
}

bool SelectsOutput(const OpDef& def) {
  const int out = def.FindOutput("Out");
  constexpr unsigned kBranches = kList | kOptional | kAnyKind;
  return out >= 0 && (def.outputs()[out].flags & kBranches) == kBranches &&
         def.FindInput("Mask") >= 0;
}

int ConditionSlot(const OpDef& def) {
  const auto is_record = [](const SlotDef& slot) { return (slot.flags & kRecord) != 0; };
  if (!def.has(kControlFlow) || def.outputs().size() != 2 || !is_record(def.outputs()[1]))
    return -1;
  if (def.FindInput("sub_block:changing(Condition)") >= 0) return def.FindInput("Condition");
  return def.FindAttr("is_scalar_condition") >= 0 ? def.FindInput("Cond") : -1;
}

bool RunsAgain(const OpDef& def) { return def.FindInput("sub_block:arrays") >= 0; }

void FillSubBlockSlots(Program* program) {
  for (size_t b = 0; b < program->blocks.size(); ++b)
    for (size_t i = 0; i < program->blocks[b].ops.size(); ++i)
      if (program->blocks[b].ops[i].def->has(kControlFlow))
        Filler(*program, static_cast<int>(b), i).Run();
}

}  // namespace heddle::ir

#include "core/programs/sub_block_slots.h"

#include <algorithm>

namespace heddle::ir {
namespace {

constexpr std::string_view kPrefix = "sub_block:";
constexpr std::string_view kGrad = "@GRAD";

// A set of variables that can be emptied in constant time.
class Marks {
 public:
  void Clear() { ++now_; }
  void Set(VarId v) {
    if (v >= at_.size()) at_.resize(v + 1, 0);
    at_[v] = now_;
  }
  void Set(const std::vector<std::vector<VarId>>& slots) {
    for (const auto& slot : slots)
      for (VarId v : slot)
        if (v != kNoVar) Set(v);
  }
  void Drop(VarId v) {
    if (v < at_.size()) at_[v] = 0;
  }
  bool operator[](VarId v) const { return v < at_.size() && at_[v] == now_; }

 private:
  std::vector<uint32_t> at_;
  uint32_t now_ = 1;
};

// The nesting of blocks, so that an operator visits only its own blocks.
class Tree {
 public:
  explicit Tree(const Program& p)
      : children_(p.blocks.size()), gradients_(p.blocks.size()), vars_(p.blocks.size()) {
    for (const Block& block : p.blocks) {
      if (block.id > 0 && block.parent >= 0) children_[block.parent].push_back(block.id);
      if (block.forward_block >= 0 && block.forward_block < std::ssize(gradients_))
        gradients_[block.forward_block].push_back(block.id);
    }
    for (VarId v = 0; v < p.vars.size(); ++v) Add(v, p.vars[v].block);
  }
  void Add(VarId v, int block) { vars_[block].push_back(v); }

  // The block and all blocks inside it, except those for which `skip` is true and the blocks inside
  // them.
  template <typename Skip>
  std::vector<int> Under(int block, Skip&& skip) const {
    std::vector<int> all = {block};
    for (size_t i = 0; i < all.size(); ++i)
      for (int child : children_[all[i]])
        if (!skip(child)) all.push_back(child);
    return all;
  }
  std::vector<int> Under(int block) const {
    return Under(block, [](int) { return false; });
  }
  const std::vector<int>& GradientsOf(int forward) const { return gradients_[forward]; }
  const std::vector<VarId>& VarsOf(int block) const { return vars_[block]; }

  Marks read, written, now, changing, in_place;

 private:
  std::vector<std::vector<int>> children_, gradients_;
  std::vector<std::vector<VarId>> vars_;
};

class Filler {
 public:
  Filler(Program& program, Tree& tree, int block, size_t at)
      : p_(program), tree_(tree), op_(program.blocks[block].ops[at]), sub_(FindSubBlock()) {}

  void Run() {
    if (sub_ < 0) return;
    for (const bool locals : {true, false}) {  // locals first, since others may find them
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
      for (int block : tree_.Under(sub_))
        for (VarId v : tree_.VarsOf(block))
          if (p_.vars[v].kind == VarKind::kArray) slot->push_back(v);
      std::sort(slot->begin(), slot->end());
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
      FindChanging();
      for (const std::string& name : Names(of_changing)) {
        const VarId v = p_.Find(sub_, name);
        slot->push_back(v != kNoVar && tree_.changing[v] ? v : kNoVar);
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

  // Marks variables whose values after the sub-block may differ from run to run of it.
  void FindChanging() {
    Marks &written = tree_.written, &now = tree_.now, &changing = tree_.changing;
    for (Marks* marks : {&written, &now, &changing}) marks->Clear();
    for (int block : tree_.Under(sub_))
      for (const Op& op : p_.blocks[block].ops) written.Set(op.outputs);
    for (const Op& op : p_.blocks[sub_].ops) {
      constexpr unsigned kOwnWill = kRandom | kSideEffect | kCommunication | kReader | kControlFlow;
      bool changes = (op.def->traits() & kOwnWill) != 0;
      for (const auto& slot : op.inputs)
        for (VarId v : slot)
          if (v != kNoVar) changes = changes || changing[v] || (written[v] && !now[v]);
      for (const auto& slot : op.outputs)
        for (VarId v : slot) {
          if (v == kNoVar) continue;
          now.Set(v);
          // Arrays keep their other items.
          const bool in_part = p_.vars[v].kind != VarKind::kTensor;
          if (changes || in_part || p_.vars[v].persistable)
            changing.Set(v);
          else
            changing.Drop(v);
        }
      for (int inner : op.SubBlocks())
        for (int block : tree_.Under(inner))
          for (const Op& nested : p_.blocks[block].ops) {
            now.Set(nested.outputs);
            changing.Set(nested.outputs);
          }
    }
  }
  // Whether block `b` is `outer` or lies inside it.
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
    tree_.Add(inner, sub_);
    std::vector<int> blocks = tree_.Under(sub_);
    for (int gradient : tree_.GradientsOf(sub_)) {
      const std::vector<int> more = tree_.Under(gradient);
      blocks.insert(blocks.end(), more.begin(), more.end());
    }
    for (int block : blocks)
      for (Op& op : p_.blocks[block].ops)
        for (auto* slots : {&op.inputs, &op.outputs})
          for (auto& slot : *slots) Rename(name, inner, &slot);
    return inner;
  }
  // Replaces operands of this name that come from outside the sub-block by `inner`.
  void Rename(const std::string& name, VarId inner, std::vector<VarId>* slot) const {
    for (VarId& v : *slot)
      if (v != kNoVar && p_.vars[v].name == name && !Within(p_.vars[v].block, sub_)) v = inner;
  }

  // The variables whose values in each step the gradient reads.
  std::vector<VarId> Recorded(bool carried) const {
    const int forward = p_.blocks[sub_].forward_block >= 0 ? p_.blocks[sub_].forward_block : sub_;
    std::vector<VarId> found;
    const std::vector<int>& gradients = tree_.GradientsOf(forward);
    if (gradients.empty()) return found;
    Marks &read = tree_.read, &written = tree_.written, &in_place = tree_.in_place;
    for (Marks* marks : {&read, &written, &in_place}) marks->Clear();
    for (int gradient : gradients)
      for (int block : tree_.Under(gradient))
        for (const Op& op : p_.blocks[block].ops) read.Set(op.inputs);
    // A gradient block may lie inside its forward block.
    const std::vector<int> blocks =
        tree_.Under(forward, [&](int block) { return p_.blocks[block].forward_block == forward; });
    for (int block : blocks) {
      for (const Op& op : p_.blocks[block].ops) {
        written.Set(op.outputs);
        if (block == forward) MarkInPlace(op);
      }
    }
    if (carried) {
      const int x = op_.def->FindInput("X");
      for (VarId v : op_.inputs[x])
        if (v != kNoVar && read[v] && written[v] && !in_place[v] && !p_.vars[v].persistable &&
            p_.vars[v].kind == VarKind::kTensor)
          found.push_back(v);
      return found;
    }
    for (int block : blocks)
      for (VarId v : tree_.VarsOf(block))
        if (read[v] && block != 0) found.push_back(v);
    std::sort(found.begin(), found.end());
    return found;
  }

  void MarkInPlace(const Op& op) const {
    tree_.now.Clear();
    tree_.now.Set(op.inputs);
    for (const auto& out : op.outputs)
      for (VarId v : out)
        if (v != kNoVar && tree_.now[v]) tree_.in_place.Set(v);
  }

  Program& p_;
  Tree& tree_;
  Op& op_;
  const int sub_;
};

bool IsRecord(const SlotDef& slot) { return (slot.flags & kRecord) != 0; }

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
  if (!def.has(kControlFlow) || def.outputs().size() != 2 || !IsRecord(def.outputs()[1])) return -1;
  if (def.FindInput("sub_block:changing(Condition)") >= 0) return def.FindInput("Condition");
  return def.FindAttr("is_scalar_condition") >= 0 ? def.FindInput("Cond") : -1;
}

bool NeedNotRun(const OpDef& def) {
  return ConditionSlot(def) >= 0 || std::any_of(def.inputs().begin(), def.inputs().end(), IsRecord);
}

bool RunsAgain(const OpDef& def) { return def.FindInput("sub_block:arrays") >= 0; }

void FillSubBlockSlots(Program* program) {
  if (program->blocks.size() < 2) return;
  Tree tree(*program);
  for (size_t b = 0; b < program->blocks.size(); ++b)
    for (size_t i = 0; i < program->blocks[b].ops.size(); ++i)
      if (program->blocks[b].ops[i].def->has(kControlFlow))
        Filler(*program, tree, static_cast<int>(b), i).Run();
}

}  // namespace heddle::ir

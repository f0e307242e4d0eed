// Lowers the operators that the table maps to one of heddle's.
#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "formats/pir/lower.h"

namespace heddle::pir {
namespace {

// Attributes that heddle's kernels do not need: places, labels, hints, and what follows from
// operands or from the operator's name.
constexpr std::string_view kUnneeded[] = {"place",           "struct_name",
                                          "op_role",         "interp_method",
                                          "input_size",      "stable",
                                          "im2col_step",     "sparse",
                                          "is_sparse",       "seed",
                                          "overwrite",       "rng_name",
                                          "force_cpu",       "op_device",
                                          "use_cudnn",       "out_stride",
                                          "deterministic",   "epsilon",
                                          "target_shape",    "workspace_size_MB",
                                          "multi_precision", "exclude_from_weight_decay"};

// Whether the attribute has its neutral value: 0, false, -1 or nothing.
bool SaysNothing(const Attribute& attribute) {
  Numbers numbers;
  std::string_view text;
  if (ReadText(attribute.value, &text)) return text.empty() || text.starts_with("NC");
  if (!ReadNumbers(attribute.value, &numbers)) return false;
  return std::all_of(numbers.reals.begin(), numbers.reals.end(),
                     [](double v) { return v == 0 || v == -1; });
}

bool IsUnneeded(std::string_view name) {
  return std::find(std::begin(kUnneeded), std::end(kUnneeded), name) != std::end(kUnneeded);
}

bool IsIn(const std::vector<Mapping::Attribute>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(), [&](const auto& a) { return a.name == name; });
}

const SlotDef* InputOf(const OpDef& def, std::string_view slot) {
  const int s = def.FindInput(slot);
  return s < 0 ? nullptr : &def.inputs()[static_cast<size_t>(s)];
}

}  // namespace

// Chooses the first mapping that accepts the operator.
void Lowering::LowerMapped(const Operation& op, const std::vector<Mapping>& mappings) {
  const Mapping* chosen = nullptr;
  std::string why;
  for (const Mapping& m : mappings) {
    const std::string misfit = Misfit(op, m);
    if (misfit.empty()) {
      chosen = &m;
      break;
    }
    if (why.empty()) why = misfit;
  }
  if (chosen == nullptr) {
    Problem(op, why);
    for (const Definition& result : op.results) Bind(result.id, NewBinding(result));
    return;
  }
  DraftOp made;
  made.type = chosen->def->name();
  made.source = &op;
  made.role = RoleOf(op);
  for (size_t i = 0; i < op.operands.size(); ++i) MapOperand(op, *chosen, i, &made);
  MapAttributes(op, *chosen, &made);
  MapResults(op, *chosen, &made);
  draft_.blocks[static_cast<size_t>(block_)].ops.push_back(std::move(made));
}

// Why mapping `m` cannot express the operator; empty if it can.
std::string Lowering::Misfit(const Operation& op, const Mapping& m) {
  if (op.operands.size() != m.operands.size())
    return StrCat("has ", op.operands.size(), " operands; ", m.operands.size(), " are expected");
  for (size_t i = 0; i < m.operands.size(); ++i) {
    const Mapping::Operand& operand = m.operands[i];
    const auto found = values_.find(op.operands[i]);
    const bool given = op.operands[i] != 0 &&
                       (found == values_.end() || found->second.kind != Binding::Kind::kNothing);
    if (operand.slot.empty() && operand.attribute.empty()) continue;
    if (!operand.attribute.empty()) {
      bool taken = m.def->FindAttr(operand.attribute) >= 0;
      for (std::string_view slot : operand.slots) taken |= m.def->FindInput(slot) >= 0;
      if (given && !taken)
        return StrCat("heddle's ", m.def->name(), " has no '", std::string(operand.attribute),
                      "' for operand ", i);
      continue;
    }
    const SlotDef* slot = InputOf(*m.def, operand.slot);
    if (given && slot == nullptr)
      return StrCat("heddle's ", m.def->name(), " takes no operand '", std::string(operand.name),
                    "' (operand ", i, ")");
    if (!given && slot != nullptr && !(slot->flags & (kOptional | kList)))
      return StrCat("operand ", i, " ('", std::string(operand.name), "') is not given");
  }
  return "";
}

// The numbers of a constant, or of a list of constants. Null: not known before a run.
const Numbers* Lowering::ConstantOf(const Binding& binding, Numbers* joined) const {
  if (binding.kind == Binding::Kind::kVar) {
    const auto found = constants_.find(binding.var);
    return found == constants_.end() ? nullptr : &found->second;
  }
  for (int var : binding.list) {
    const auto found = constants_.find(var);
    if (found == constants_.end()) return nullptr;
    joined->Append(found->second);
  }
  return joined;
}

// Whether a list has a single variable with several numbers: the translator's form of a tensor
// operand.
bool Lowering::IsOneTensor(const Binding& binding) const {
  if (binding.list.size() != 1 || binding.list[0] == kNoDraft) return false;
  const DraftVar& var = draft_.vars[static_cast<size_t>(binding.list[0])];
  return var.ranked && var.dims.size() == 1 && var.dims[0] != 1;
}

void Lowering::MapOperand(const Operation& op, const Mapping& m, size_t i, DraftOp* to) {
  const Mapping::Operand& operand = m.operands[i];
  if (operand.slot.empty() && operand.attribute.empty()) return;
  const Binding* binding = Operand(op, i);
  if (binding == nullptr) return;
  const bool list = binding->kind == Binding::Kind::kList && !IsOneTensor(*binding);
  if (binding->kind == Binding::Kind::kStack) return Problem(op, "operand ", i, " is a stack");
  std::vector<int> vars =
      binding->kind == Binding::Kind::kList ? binding->list : std::vector<int>{binding->var};
  if (operand.attribute.empty()) {
    // The translator passes a whole list where a gradient needs only the shape of its first
    // element.
    const SlotDef* slot = InputOf(*m.def, operand.slot);
    constexpr unsigned kWanted = kNoBuffer | kList;
    if (vars.size() > 1 && slot != nullptr && (slot->flags & kWanted) == kNoBuffer) vars.resize(1);
    return In(to, operand.slot, vars);
  }
  const int a = m.def->FindAttr(operand.attribute);
  Numbers joined;
  if (const Numbers* numbers = a < 0 ? nullptr : ConstantOf(*binding, &joined)) {
    const AttrValue& like = m.def->attrs()[static_cast<size_t>(a)].default_value;
    auto value = ToAttr(*numbers, like);
    if (!value.ok())
      return Problem(op, "operand ", i, " ('", std::string(operand.name), "', %", op.operands[i],
                     ") ", value.status().message());
    to->attributes.emplace_back(operand.attribute, *std::move(value));
    return;
  }
  for (std::string_view name : operand.slots) {
    const SlotDef* slot = InputOf(*m.def, name);
    if (slot == nullptr || list != ((slot->flags & kList) != 0)) continue;
    return In(to, name, vars);
  }
  if (a >= 0)
    to->attributes_from.emplace_back(operand.attribute, vars);
  else
    Problem(op, "operand ", i, " ('", std::string(operand.name), "') must be ",
            list ? "one value" : "a list");
}

void Lowering::MapAttributes(const Operation& op, const Mapping& m, DraftOp* to) {
  for (const Attribute& attribute : op.attributes) {
    std::string_view name = attribute.name;
    for (const Mapping::Attribute& known : m.attributes)
      if (known.name == attribute.name) name = known.to;
    const int a = m.def->FindAttr(name);
    if (a < 0) {
      const bool known = name != attribute.name || IsIn(m.attributes, name);
      // A gradient may ignore an attribute that its forward operator needs.
      if (known && m.def->name().ends_with("_grad")) continue;
      if (!IsUnneeded(attribute.name) && !SaysNothing(attribute))
        Problem(op, "heddle's ", m.def->name(), " has no attribute '", std::string(attribute.name),
                "', which is set");
      continue;
    }
    auto value = ToAttr(attribute, m.def->attrs()[static_cast<size_t>(a)].default_value);
    if (value.ok())
      to->attributes.emplace_back(name, *std::move(value));
    else
      Problem(op, value.status().message());
  }
  for (const Mapping::Fixed& fixed : m.fixed) {
    const int a = m.def->FindAttr(fixed.to);
    if (a < 0) continue;
    const AttrValue& like = m.def->attrs()[static_cast<size_t>(a)].default_value;
    to->attributes.emplace_back(fixed.to, std::holds_alternative<bool>(like)
                                              ? AttrValue(fixed.value != 0)
                                              : AttrValue(fixed.value));
  }
  // An empty list of axes means all axes.
  if (m.def->FindAttr("reduce_all") < 0) return;
  for (const auto& [name, value] : to->attributes) {
    const auto* dims = std::get_if<Ints>(&value);
    if (name != "dim" || dims == nullptr || !dims->empty()) continue;
    to->attributes.emplace_back("reduce_all", true);
    break;
  }
}

void Lowering::MapResults(const Operation& op, const Mapping& m, DraftOp* to) {
  for (size_t r = 0; r < op.results.size(); ++r) {
    const Definition& result = op.results[r];
    const Mapping::Result* known = r < m.results.size() ? &m.results[r] : nullptr;
    const int s = known == nullptr ? -1 : m.def->FindOutput(known->slot);
    if (result.type.kind == Type::Kind::kNone) {
      Bind(result.id, {});
      continue;
    }
    const bool in_place = known != nullptr && known->operand >= 0;
    const Binding* same = nullptr;
    if (in_place) same = Operand(op, static_cast<size_t>(known->operand));
    if (s < 0) {
      Binding missing;
      missing.missing = true;
      Bind(result.id, same != nullptr ? *same : missing);
      continue;
    }
    const SlotDef& slot = m.def->outputs()[static_cast<size_t>(s)];
    if (!in_place && (slot.flags & kOptional) && !uses_.used(result.id)) {
      Bind(result.id, {});
      continue;
    }
    const Binding binding = same != nullptr ? *same : NewBinding(result);
    Out(to, known->slot,
        binding.kind == Binding::Kind::kList ? binding.list : std::vector<int>{binding.var});
    Bind(result.id, binding);
  }
}

}  // namespace heddle::pir

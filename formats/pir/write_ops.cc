// Writes operators that the table has a phrase for.
#include <algorithm>
#include <cmath>

#include "core/programs/program_builder.h"
#include "core/shapes.h"
#include "formats/pir/write.h"
#include "formats/pir/write_text.h"

namespace heddle::pir {
namespace {

using ir::kNoVar;
using ir::Op;
using ir::VarId;

bool NamesVariable(const std::vector<VarId>& slot) {
  return std::any_of(slot.begin(), slot.end(), [](VarId v) { return v != kNoVar; });
}

const std::vector<VarId>* VarsOf(const Op& op, std::string_view slot) {
  const int s = op.def->FindInput(slot);
  return s < 0 || !NamesVariable(op.inputs[static_cast<size_t>(s)])
             ? nullptr
             : &op.inputs[static_cast<size_t>(s)];
}
const std::vector<VarId>* OutputOf(const Op& op, std::string_view slot) {
  const int s = op.def->FindOutput(slot);
  return s < 0 || !NamesVariable(op.outputs[static_cast<size_t>(s)])
             ? nullptr
             : &op.outputs[static_cast<size_t>(s)];
}

// The variables that hold an attribute's value; null: the attribute has a value of its own.
const std::vector<VarId>* HolderOf(const Op& op, int attribute) {
  for (size_t k = 0; k < op.var_attrs.size(); ++k)
    if (op.var_attrs[k] == attribute) return &op.inputs[op.def->inputs().size() + k];
  return nullptr;
}

// Whether an attribute need not be written: it follows from the operator's name or operands in PIR,
// or it decides about NaN, infinities, extreme numbers or rounding, where Paddle offers no choice.
bool SaysNothingNew(std::string_view attribute) {
  constexpr std::string_view kUnneeded[] = {
      "reduce_all", "in_dtype",   "op_version", "infer_flags",   "use_cudnn",
      "is_test",    "axis_given", "out_dtype",  "str_value",     "force_cpu",
      "keep_nan",   "exact",      "skip_nan",   "from_infinity", "divide_first"};
  return attribute.starts_with(ir::kRewrites) ||
         std::find(std::begin(kUnneeded), std::end(kUnneeded), attribute) != std::end(kUnneeded);
}

// Parses the text of an attribute's value in the table.
AttrValue ParsedAs(std::string_view kind, std::string_view text) {
  if (kind == "str") return std::string(text);
  if (kind.ends_with("[]") || kind == "ints") return Ints();
  const double real = RealIn(text);
  if (kind.starts_with("f")) return real;
  return static_cast<int64_t>(real);
}

}  // namespace

void Writer::AddMapped(const Op& op) {
  const std::vector<Phrase> phrases = PhrasesFor(op.type());
  if (phrases.empty()) return CannotSay(op, "Paddle 3 has no such operator");
  std::string why;
  for (const Phrase& phrase : phrases) {
    const std::string misfit = Misfit(op, phrase);
    if (!misfit.empty()) {
      if (why.empty()) why = misfit;
      continue;
    }
    Text text{.name = phrase.pir};
    for (const Phrase::Operand& operand : phrase.operands)
      text.operands.push_back(OperandFor(op, operand));
    for (const Phrase::Attribute& attribute : phrase.attributes)
      text.attributes.push_back(AttributeFor(op, attribute));
    return AddResults(op, phrase, std::move(text));
  }
  CannotSay(op, why);
}

// Why the phrase cannot express the operator; empty if it can.
std::string Writer::Misfit(const Op& op, const Phrase& phrase) const {
  std::vector<std::string_view> slots, attributes;
  for (const Phrase::Operand& operand : phrase.operands) {
    slots.push_back(operand.slot);
    slots.insert(slots.end(), operand.slots.begin(), operand.slots.end());
    attributes.push_back(operand.attribute);
    if (!operand.slot.empty() && !operand.optional && VarsOf(op, operand.slot) == nullptr &&
        !(operand.list && op.def->FindInput(operand.slot) >= 0))
      return StrCat("its ", std::string(phrase.pir), " wants an operand '",
                    std::string(operand.name), "'");
    if (!operand.attribute.empty() && op.def->FindAttr(operand.attribute) < 0) {
      bool given = false;
      for (std::string_view slot : operand.slots) given |= VarsOf(op, slot) != nullptr;
      if (!given)
        return StrCat("its ", std::string(phrase.pir), " wants '", std::string(operand.name), "'");
    }
  }
  for (const Phrase::Attribute& a : phrase.attributes) attributes.push_back(a.from);
  for (const Phrase::Fixed& fixed : phrase.fixed) {
    attributes.push_back(fixed.attribute);
    if (op.Attr<bool>(fixed.attribute) != fixed.value)
      return StrCat("'", std::string(fixed.attribute), "' has another value");
  }
  const auto knows = [](const auto& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (size_t s = 0; s < op.def->inputs().size(); ++s) {
    const std::string& slot = op.def->inputs()[s].name;
    if (NamesVariable(op.inputs[s]) && !knows(slots, slot))
      return StrCat("its ", std::string(phrase.pir), " takes no '", slot, "'");
  }
  for (size_t a = 0; a < op.attrs.size(); ++a) {
    const AttrDef& def = op.def->attrs()[a];
    const bool usual =
        op.attrs[a] == def.default_value && HolderOf(op, static_cast<int>(a)) == nullptr;
    if (!usual && !knows(attributes, def.name) && !SaysNothingNew(def.name))
      return StrCat("its ", std::string(phrase.pir), " has no attribute '", def.name, "'");
  }
  for (const Phrase::Result& result : phrase.results) {
    if (result.operand < 0) continue;
    const auto* out = OutputOf(op, result.slot);
    const auto* in = VarsOf(op, phrase.operands[static_cast<size_t>(result.operand)].slot);
    if (out != nullptr && (in == nullptr || *in != *out))
      return StrCat("its ", std::string(phrase.pir), " works in place, and this one does not");
  }
  return "";
}

ValueId Writer::Combined(const std::vector<VarId>& vars) {
  Text text{.name = "builtin.combine"};
  std::vector<std::string> types;
  for (VarId v : vars) {
    text.operands.push_back(ValueOf(v));
    types.push_back(v == kNoVar ? std::string(kNoType) : TypeOf(VarOf(v)));
  }
  text.results = {ListType(types)};
  return EmitOne(std::move(text));
}

ValueId Writer::OperandFor(const Op& op, const Phrase::Operand& operand) {
  if (operand.attribute.empty()) {
    if (operand.slot.empty()) return operand.name == "dropout_state_in" ? dropout_state_ : 0;
    const auto* vars = VarsOf(op, operand.slot);
    if (operand.list)
      return vars == nullptr && operand.optional ? 0 : Combined(op.In(operand.slot));
    return vars == nullptr ? 0 : ValueOf((*vars)[0]);
  }
  for (std::string_view slot : operand.slots) {
    const auto* vars = VarsOf(op, slot);
    if (vars == nullptr) continue;
    const bool list =
        (op.def->inputs()[static_cast<size_t>(op.def->FindInput(slot))].flags & kList) != 0;
    return list ? Combined(*vars) : ValueOf((*vars)[0]);
  }
  const int a = op.def->FindAttr(operand.attribute);
  if (const auto* vars = HolderOf(op, a))
    return vars->size() == 1 ? ValueOf((*vars)[0]) : Combined(*vars);
  // An empty list of axes means all axes.
  if (const int all = op.def->FindAttr("reduce_all");
      all >= 0 && operand.attribute == "dim" && std::get<bool>(op.attrs[static_cast<size_t>(all)]))
    return IntArray({});
  return Constant(op.attrs[static_cast<size_t>(a)], operand.several);
}

ValueId Writer::Constant(const AttrValue& value, bool several) {
  if (several) {
    if (const auto* list = std::get_if<Ints>(&value)) return IntArray(*list);
    if (const auto* one = std::get_if<int64_t>(&value)) return IntArray({*one});
  }
  if (const auto* list = std::get_if<Ints>(&value); list != nullptr && !list->empty())
    return Full(DType::kI64, {1}, static_cast<double>((*list)[0]));
  if (const auto* v = std::get_if<int64_t>(&value))
    return Full(*v == static_cast<int32_t>(*v) ? DType::kI32 : DType::kI64, {1},
                static_cast<double>(*v));
  if (const auto* v = std::get_if<bool>(&value)) return Full(DType::kBool, {1}, *v);
  if (const auto* v = std::get_if<std::string>(&value))  // old programs store tolerances as text
    return Full(DType::kF64, {1}, RealIn(*v));
  const auto* real = std::get_if<double>(&value);
  return Full(DType::kF32, {1}, real != nullptr ? *real : 0);
}

ValueId Writer::IntArray(const Ints& values) {
  return EmitOne({.name = "pd_op.full_int_array",
                  .attributes = {Named("value", *AttributeText("i64[]", values)),
                                 Named("dtype", *AttributeText("dtype", DTypeToProto(DType::kI64))),
                                 Named("place", *AttributeText("place", false))},
                  .results = {TensorType(DType::kI64, {static_cast<int64_t>(values.size())})}});
}

ValueId Writer::Full(DType dtype, const Shape& shape, double value) {
  // Paddle 3.3 writes NaN into files, but cannot read it.
  if (std::isnan(value)) {
    const ValueId zero = Full(dtype, shape, 0);
    return EmitOne(
        {.name = "pd_op.divide", .operands = {zero, zero}, .results = {TensorType(dtype, shape)}});
  }
  return EmitOne(
      {.name = "pd_op.full",
       .attributes = {Named("shape", *AttributeText("ints", Ints(shape.begin(), shape.end()))),
                      Named("value", *AttributeText("f64", value)),
                      Named("dtype", *AttributeText("dtype", DTypeToProto(dtype))),
                      Named("place", *AttributeText("place", false))},
       .results = {TensorType(dtype, shape)}});
}

std::string Writer::AttributeFor(const Op& op, const Phrase::Attribute& attribute) {
  const int a = op.def->FindAttr(attribute.from);
  AttrValue value;
  if (a >= 0) {
    value = op.attrs[static_cast<size_t>(a)];
  } else if (attribute.kind == "dtype") {
    const DType dtype = op.outputs[0].empty() ? DType::kF32 : VarOf(op.outputs[0][0]).dtype;
    value = DTypeToProto(dtype);
  } else if (attribute.name == "input_size" && VarsOf(op, "Input") != nullptr) {
    const Shape& shape = VarOf(op.In("Input")[0]).shape;
    value = shape.rank() > 0 ? shape.dim(-1) : int64_t{0};
  } else {
    value = ParsedAs(attribute.kind, attribute.otherwise);
  }
  if (const int all = op.def->FindAttr("reduce_all");
      all >= 0 && attribute.from == "dim" && std::get<bool>(op.attrs[static_cast<size_t>(all)]))
    value = Ints();
  if (attribute.kind == "scalar[]") return Named(attribute.name, ListedValues(op));
  const auto text = AttributeText(attribute.kind, value);
  if (!text) {
    CannotSay(op, "attribute '", std::string(attribute.from), "' is no ",
              std::string(attribute.kind));
    return "{}";
  }
  return Named(attribute.name, *text);
}

// The values of assign_value and set_value, which have one attribute per dtype.
std::string Writer::ListedValues(const Op& op) const {
  Floats values;
  for (const char* name : {"values", "bool_values", "int8_values", "int32_values", "int64_values",
                           "fp32_values", "fp64_values"}) {
    const int a = op.def->FindAttr(name);
    if (a < 0 || !values.empty()) continue;
    const AttrValue& list = op.attrs[static_cast<size_t>(a)];
    if (const auto* ints = std::get_if<Ints>(&list)) values.assign(ints->begin(), ints->end());
    if (const auto* reals = std::get_if<Floats>(&list)) values = *reals;
  }
  const DType dtype = op.outputs[0].empty() ? DType::kF32 : VarOf(op.outputs[0][0]).dtype;
  return ElementsText(dtype, values);
}

// The length of a list output that is not read: new states are as many as the old ones.
size_t Writer::ListSize(const Op& op, std::string_view slot) {
  for (size_t s = 0; s < op.def->inputs().size(); ++s)
    if (op.def->inputs()[s].name.ends_with(slot) && !op.inputs[s].empty())
      return op.inputs[s].size();
  return 1;
}

void Writer::AddResults(const Op& op, const Phrase& phrase, Text text) {
  DType first = DType::kF32;
  for (const auto& slot : op.outputs)
    if (NamesVariable(slot) && first == DType::kF32) first = VarOf(slot[0]).dtype;
  for (const Phrase::Result& result : phrase.results) {
    const auto* vars = OutputOf(op, result.slot);
    if (vars == nullptr) {
      // Gradients that are not wanted are not made: some operands have none.
      const bool made = result.computed || (!result.optional && !result.slot.ends_with("@GRAD"));
      const std::string type = TensorType(first, Shape{-1});
      text.results.push_back(!made         ? std::string(kNoType)
                             : result.list ? ListType(Strings(ListSize(op, result.slot), type))
                                           : type);
      continue;
    }
    std::vector<std::string> types;
    for (VarId v : *vars) types.push_back(v == kNoVar ? std::string(kNoType) : TypeOf(VarOf(v)));
    text.results.push_back(result.list ? ListType(types) : types[0]);
  }
  const ValueId x = text.operands.empty() ? 0 : text.operands[0];
  const std::vector<ValueId> ids = Emit(std::move(text));
  // PIR has no XShape output: gradients read the forward operator's input instead.
  if (const auto* record = OutputOf(op, "XShape")) Set((*record)[0], x);
  for (size_t r = 0; r < phrase.results.size(); ++r) {
    const auto* vars = OutputOf(op, phrase.results[r].slot);
    if (vars == nullptr) continue;
    if (!phrase.results[r].list) {
      Set((*vars)[0], ids[r]);
      if (phrase.results[r].operand >= 0) stored_[(*vars)[0]] = ids[r];
      continue;
    }
    Text split{.name = "builtin.split", .operands = {ids[r]}};
    for (VarId v : *vars)
      split.results.push_back(v == kNoVar ? std::string(kNoType) : TypeOf(VarOf(v)));
    const std::vector<ValueId> parts = Emit(std::move(split));
    for (size_t i = 0; i < vars->size(); ++i) Set((*vars)[i], parts[i]);
  }
}

}  // namespace heddle::pir

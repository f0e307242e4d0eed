#include "passes/library/c_operators.h"

#include <algorithm>

#include "core/error.h"

namespace heddle::passes {

COperator::COperator(OpSpec spec) : spec_(std::move(spec)) {
  AddSlots(spec_.inputs, &inputs_);
  AddSlots(spec_.outputs, &outputs_);
  for (const auto& [name, value] : spec_.attributes) AddAttribute(name, value);
  op_ = {sizeof(op_),     spec_.type.c_str(), inputs_.size(),         inputs_.data(),
         outputs_.size(), outputs_.data(),    attribute_list_.size(), attribute_list_.data()};
}

void COperator::AddSlots(const NamedSlots& from, std::vector<const heddle_pass_slot*>* to) {
  for (const auto& [name, variables] : from) {
    auto& names = texts_.emplace_back();
    for (const std::string& variable : variables) names.push_back(variable.c_str());
    slots_.push_back({sizeof(heddle_pass_slot), name.c_str(), names.size(), names.data()});
    to->push_back(&slots_.back());
  }
}

void COperator::AddAttribute(const std::string& name, const AttributeValue& value) {
  heddle_engine_attribute attr = {};
  attr.size = sizeof(attr);
  attr.name = name.c_str();
  attr.count = 1;
  if (const bool* b = std::get_if<bool>(&value)) {
    attr.kind = HEDDLE_ENGINE_BOOLEAN;
    attr.ints = &bools_.emplace_back(*b ? 1 : 0);
  } else if (const auto* i = std::get_if<int64_t>(&value)) {
    attr.kind = HEDDLE_ENGINE_INTEGER;
    attr.ints = i;
  } else if (const auto* d = std::get_if<double>(&value)) {
    attr.kind = HEDDLE_ENGINE_REAL;
    attr.reals = d;
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    attr.kind = HEDDLE_ENGINE_TEXT;
    attr.texts = texts_.emplace_back(1, s->c_str()).data();
  } else if (const auto* is = std::get_if<std::vector<int64_t>>(&value)) {
    attr.kind = HEDDLE_ENGINE_INTEGERS;
    attr.count = is->size();
    attr.ints = is->data();
  } else if (const auto* ds = std::get_if<std::vector<double>>(&value)) {
    attr.kind = HEDDLE_ENGINE_REALS;
    attr.count = ds->size();
    attr.reals = ds->data();
  } else if (const auto* ss = std::get_if<std::vector<std::string>>(&value)) {
    auto& texts = texts_.emplace_back();
    for (const std::string& text : *ss) texts.push_back(text.c_str());
    attr.kind = HEDDLE_ENGINE_TEXTS;
    attr.count = texts.size();
    attr.texts = texts.data();
  } else {
    return;  // blocks
  }
  attributes_.push_back(attr);
  attribute_list_.push_back(&attributes_.back());
}

namespace {

// Whether the structure is there, as large as this heddle reads it.
template <typename T>
bool Has(const T* structure) {
  return structure != nullptr && structure->size >= sizeof(T);
}

// What pointer and count stand for; nullopt: a list without its pointer.
template <typename T>
bool IsList(const T* items, size_t count) {
  return items != nullptr || count == 0;
}

using NamedSlots = std::vector<std::pair<std::string, std::vector<std::string>>>;

Status AddSlots(const heddle_pass_slot* const* slots, size_t count, NamedSlots* to) {
  if (!IsList(slots, count)) return InvalidArgument("an operator's list of slots is missing");
  for (size_t s = 0; s < count; ++s) {
    if (!Has(slots[s]) || slots[s]->name == nullptr ||
        !IsList(slots[s]->variables, slots[s]->count))
      return InvalidArgument("slot ", s, " of an operator lacks its size, name or variables");
    auto& variables = to->emplace_back(slots[s]->name, std::vector<std::string>()).second;
    for (size_t v = 0; v < slots[s]->count; ++v)
      variables.emplace_back(slots[s]->variables[v] != nullptr ? slots[s]->variables[v] : "");
  }
  return Status::Ok();
}

Result<AttributeValue> ValueOf(const heddle_engine_attribute& attr) {
  const bool one = attr.count == 1;
  switch (attr.kind) {
    case HEDDLE_ENGINE_BOOLEAN:
      if (one && attr.ints != nullptr) return AttributeValue(attr.ints[0] != 0);
      break;
    case HEDDLE_ENGINE_INTEGER:
      if (one && attr.ints != nullptr) return AttributeValue(attr.ints[0]);
      break;
    case HEDDLE_ENGINE_REAL:
      if (one && attr.reals != nullptr) return AttributeValue(attr.reals[0]);
      break;
    case HEDDLE_ENGINE_TEXT:
      if (one && attr.texts != nullptr && attr.texts[0] != nullptr)
        return AttributeValue(std::string(attr.texts[0]));
      break;
    case HEDDLE_ENGINE_INTEGERS:
      if (IsList(attr.ints, attr.count))
        return AttributeValue(std::vector<int64_t>(attr.ints, attr.ints + attr.count));
      break;
    case HEDDLE_ENGINE_REALS:
      if (IsList(attr.reals, attr.count))
        return AttributeValue(std::vector<double>(attr.reals, attr.reals + attr.count));
      break;
    case HEDDLE_ENGINE_TEXTS:
      if (IsList(attr.texts, attr.count) &&
          std::all_of(attr.texts, attr.texts + attr.count, [](auto* t) { return t != nullptr; }))
        return AttributeValue(std::vector<std::string>(attr.texts, attr.texts + attr.count));
      break;
    default:
      break;
  }
  return InvalidArgument("attribute '", attr.name, "' has kind ", attr.kind,
                         " and no such value beside it");
}

}  // namespace

Result<OpSpec> SpecOf(const heddle_pass_operator* op) {
  if (!Has(op) || op->type == nullptr)
    return InvalidArgument("an operator is missing, or lacks its size or type");
  OpSpec spec;
  spec.type = op->type;
  HEDDLE_RETURN_IF_ERROR(AddSlots(op->inputs, op->num_inputs, &spec.inputs));
  HEDDLE_RETURN_IF_ERROR(AddSlots(op->outputs, op->num_outputs, &spec.outputs));
  if (!IsList(op->attributes, op->num_attributes))
    return InvalidArgument("the list of attributes of ", spec.type, " is missing");
  for (size_t a = 0; a < op->num_attributes; ++a) {
    const heddle_engine_attribute* attr = op->attributes[a];
    if (!Has(attr) || attr->name == nullptr)
      return InvalidArgument("attribute ", a, " of ", spec.type, " lacks its size or name");
    HEDDLE_ASSIGN_OR_RETURN(AttributeValue value, ValueOf(*attr));
    spec.attributes.emplace_back(attr->name, std::move(value));
  }
  return spec;
}

}  // namespace heddle::passes

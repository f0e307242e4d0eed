#include "formats/lowering/words.h"

#include <algorithm>
#include <charconv>

namespace heddle::formats {
namespace {

std::vector<const SlotDef*> InOrder(const std::vector<SlotDef>& slots, std::string_view names) {
  std::vector<const SlotDef*> all;
  if (names.empty())
    for (const SlotDef& slot : slots) all.push_back(&slot);
  ForEachWord(names, [&](std::string_view name) {
    for (const SlotDef& slot : slots)
      if (slot.name == name) all.push_back(&slot);
  });
  return all;
}

// The text in the type of an attribute's default.
AttrValue Parsed(std::string_view text, const AttrValue& like) {
  if (std::holds_alternative<bool>(like)) return text == "true";
  if (std::holds_alternative<int64_t>(like)) {
    int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }
  if (std::holds_alternative<double>(like)) {
    double number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }
  return std::string(text);
}

}  // namespace

std::vector<const SlotDef*> Words::Inputs(const OpDef& def) const {
  return InOrder(def.inputs(), inputs);
}
std::vector<const SlotDef*> Words::Outputs(const OpDef& def) const {
  return InOrder(def.outputs(), outputs);
}

std::string_view Words::InFile(std::string_view attribute) const {
  std::string_view found = attribute;
  ForEachWord(attributes, [&](std::string_view word) {
    const size_t at = word.find('<');
    if (at != std::string_view::npos && word.substr(0, at) == attribute)
      found = word.substr(at + 1);
  });
  return found;
}

std::string_view Words::Named(std::string_view other) const {
  std::string_view found;
  ForEachWord(attributes, [&](std::string_view word) {
    const size_t at = word.find('<');
    if (word.find('=') == std::string_view::npos &&
        word.substr(at == std::string_view::npos ? 0 : at + 1) == other)
      found = word.substr(0, at);
  });
  return found;
}

void Words::AddMeant(const OpDef& def, Attrs* attrs) const {
  ForEachWord(attributes, [&](std::string_view word) {
    const size_t at = word.find('=');
    const int a = at == std::string_view::npos ? -1 : def.FindAttr(word.substr(0, at));
    if (a < 0) return;
    const AttrDef& wanted = def.attrs()[static_cast<size_t>(a)];
    if (std::any_of(attrs->begin(), attrs->end(),
                    [&](const auto& said) { return said.first == wanted.name; }))
      return;
    attrs->emplace_back(wanted.name, Parsed(word.substr(at + 1), wanted.default_value));
  });
}

}  // namespace heddle::formats

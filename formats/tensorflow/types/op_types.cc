#include "formats/tensorflow/types/op_types.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "formats/tensorflow/types.h"

namespace heddle::tensorflow {
namespace {

struct OpTypes {
  std::string_view op, outputs, indices;
};
constexpr OpTypes kOpTypes[] = {
#include "formats/tensorflow/types/op_types.inc"
};

const OpTypes* TypesOf(std::string_view op) {
  static const auto* const kByName = [] {
    auto* by_name = new std::unordered_map<std::string_view, const OpTypes*>;
    for (const OpTypes& each : kOpTypes) by_name->emplace(each.op, &each);
    return by_name;
  }();
  const auto found = kByName->find(op);
  return found == kByName->end() ? nullptr : found->second;
}

// Takes the next word off a list of words with one blank between them.
std::string_view TakeWord(std::string_view* list) {
  const std::string_view word = list->substr(0, list->find(' '));
  list->remove_prefix(std::min(list->size(), word.size() + 1));
  return word;
}

int TypeNumber(std::string_view digits) {
  int number = kNoType;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// A type of the table: a number, or an attribute with its default.
int SaidType(std::string_view text, const FindAttribute& find) {
  if (text[0] >= '0' && text[0] <= '9') return TypeNumber(text);
  const size_t equals = text.find('=');
  const Attribute* a = find(text.substr(0, equals));
  if (a != nullptr && a->kind == Attribute::kType) return BaseType(a->i);
  return equals == std::string_view::npos ? int{kNoType} : TypeNumber(text.substr(equals + 1));
}

}  // namespace

int DefinedType(std::string_view op, size_t port, const FindAttribute& find) {
  const OpTypes* types = TypesOf(op);
  if (types == nullptr) return kNoType;
  for (std::string_view rest = types->outputs; !rest.empty();) {
    std::string_view output = TakeWord(&rest);
    size_t count = 1;
    if (const size_t star = output.find('*'); star == 0) {
      const Attribute* list = find(output.substr(1));
      const size_t length = list == nullptr ? 0 : list->ints.size();
      if (port < length) return BaseType(list->ints[port]);
      count = length;
    } else if (star != std::string_view::npos) {
      const Attribute* number = find(output.substr(0, star));
      output.remove_prefix(star + 1);
      count = number == nullptr || number->i < 0 ? 0 : static_cast<size_t>(number->i);
    }
    if (port < count) return SaidType(output, find);
    port -= count;
  }
  return kNoType;
}

bool TakesNarrowIndices(std::string_view op, size_t i) {
  const OpTypes* types = TypesOf(op);
  if (types == nullptr) return false;
  for (std::string_view rest = types->indices; !rest.empty();)
    if (TypeNumber(TakeWord(&rest)) == static_cast<int>(i)) return true;
  return false;
}

}  // namespace heddle::tensorflow

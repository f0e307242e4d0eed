#include "formats/lowering/type_list.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace heddle::formats {
namespace {

struct TypeRange {
  int first = 0, last = -1;
  bool of_sequences = false;
};

int TypeNumber(std::string_view digits) {
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// Takes the next range from the front of a list.
TypeRange TakeRange(std::string_view* list) {
  std::string_view word = list->substr(0, list->find(','));
  list->remove_prefix(std::min(list->size(), word.size() + 1));
  TypeRange range;
  range.of_sequences = word.starts_with('s');
  if (range.of_sequences) word.remove_prefix(1);
  const size_t dash = word.find('-');
  range.first = range.last = TypeNumber(word.substr(0, dash));
  if (dash != std::string_view::npos) range.last = TypeNumber(word.substr(dash + 1));
  return range;
}

}  // namespace

std::string_view TakeWord(std::string_view* list) {
  const std::string_view word = list->substr(0, list->find(' '));
  list->remove_prefix(std::min(list->size(), word.size() + 1));
  return word;
}

bool Lists(std::string_view list, FileType type) {
  while (!list.empty()) {
    const TypeRange range = TakeRange(&list);
    if (range.of_sequences == type.is_sequence && range.first <= type.element &&
        type.element <= range.last)
      return true;
  }
  return false;
}

FileType OnlyType(std::string_view list) {
  if (list.empty()) return {};
  const TypeRange range = TakeRange(&list);
  if (!list.empty() || range.first != range.last) return {};
  return {range.first, range.of_sequences};
}

std::string NameOf(FileType type, TypeNamer name) {
  return StrCat(type.is_sequence ? "a sequence of " : "", name(type.element));
}

std::string NamesOf(std::string_view list, TypeNamer name) {
  std::string names;
  while (!list.empty()) {
    const TypeRange range = TakeRange(&list);
    for (int t = range.first; t <= range.last; ++t)
      if (!name(t).empty())
        names += StrCat(names.empty() ? "" : ", ", NameOf({t, range.of_sequences}, name));
  }
  return names;
}

std::string_view AllowedFor(std::string_view parameter, std::string_view words) {
  while (!words.empty()) {
    const std::string_view word = TakeWord(&words);
    if (word.size() > parameter.size() && word.starts_with(parameter) &&
        word[parameter.size()] == ':')
      return word.substr(parameter.size() + 1);
  }
  return {};
}

}  // namespace heddle::formats

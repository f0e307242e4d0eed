#include "formats/tensorflow/types/op_types.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "core/error.h"
#include "core/tables/packed_rows.h"
#include "formats/lowering/type_list.h"
#include "formats/tensorflow/types.h"

namespace heddle::tensorflow {
namespace {

using formats::TakeWord;

struct OpTypes {
  std::string_view op, outputs, indices, inputs, allowed, ranks, values;
};
constexpr std::string_view kTypesText[][7] = {
// sorted by the first column
#include "formats/tensorflow/types/op_types.inc"
};
constexpr PackedRows<std::size(kTypesText), 7, BytesOfRows(kTypesText)> kOpTypes(kTypesText);

std::optional<OpTypes> TypesOf(std::string_view op) {
  const size_t at = kOpTypes.LowerBound(op);
  if (!kOpTypes.Is(at, op)) return std::nullopt;
  const auto [name, outputs, indices, inputs, allowed, ranks, values] = kOpTypes[at];
  return OpTypes{name, outputs, indices, inputs, allowed, ranks, values};
}

int TypeNumber(std::string_view digits) {
  int number = kNoType;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

int64_t NumberIn(std::string_view digits) {
  int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

bool IsWordOf(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t end = std::min(words.find('|'), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

// A type in the table: a number, or the name of an attribute with its default.
int SaidType(std::string_view text, const FindAttribute& find) {
  if (text[0] >= '0' && text[0] <= '9') return TypeNumber(text);
  const size_t equals = text.find('=');
  const Attribute* a = find(text.substr(0, equals));
  if (a != nullptr && a->kind == Attribute::kType) return BaseType(a->i);
  if (a != nullptr && a->kind == Attribute::kPlaceholder) return kNoType;
  return equals == std::string_view::npos ? int{kNoType} : TypeNumber(text.substr(equals + 1));
}

// The type of operand or output `port`, by the table's text `said`.
int TypeAt(std::string_view said, size_t port, const FindAttribute& find) {
  for (std::string_view rest = said; !rest.empty();) {
    std::string_view argument = TakeWord(&rest);
    size_t count = 1;
    if (const size_t star = argument.find('*'); star == 0) {
      const Attribute* list = find(argument.substr(1));
      if (list != nullptr && list->kind == Attribute::kPlaceholder) return kNoType;
      const size_t length = list == nullptr ? 0 : list->ints.size();
      if (port < length) return BaseType(list->ints[port]);
      count = length;
    } else if (star != std::string_view::npos) {
      const Attribute* number = find(argument.substr(0, star));
      if (number == nullptr || number->kind == Attribute::kPlaceholder) return kNoType;
      argument.remove_prefix(star + 1);
      count = number->i < 0 ? 0 : static_cast<size_t>(number->i);
    }
    if (port < count) return SaidType(argument, find);
    port -= count;
  }
  return kNoType;
}

std::string_view NameOfType(int type) { return TypeName(type); }

bool IsListed(std::string_view numbers, int64_t type) {
  return formats::Lists(numbers, {BaseType(type), false});
}

// Whether the attribute is the type of an index operand. There, readers accept all integer types,
// as TensorFlow does when it folds constants, although definitions and kernels list fewer.
bool IsOfIndices(const OpTypes& types, std::string_view attribute) {
  int at = 0;
  for (std::string_view inputs = types.inputs; !inputs.empty(); ++at) {
    std::string_view input = TakeWord(&inputs);
    input = input.substr(0, input.find('='));
    input.remove_prefix(std::min(input.size(), input.rfind('*') + 1));
    if (input != attribute) continue;
    for (std::string_view places = types.indices; !places.empty();)
      if (TypeNumber(TakeWord(&places)) == at) return true;
  }
  return false;
}

}  // namespace

int DefinedType(std::string_view op, size_t port, const FindAttribute& find) {
  const auto types = TypesOf(op);
  return !types ? int{kNoType} : TypeAt(types->outputs, port, find);
}

std::vector<int> DefinedCounts(std::string_view op, size_t arguments, const FindAttribute& find) {
  // An operator that is not in the table: several output arguments are taken to be no lists.
  std::vector<int> counts(arguments, arguments == 1 ? -1 : 1);
  const auto types = TypesOf(op);
  if (!types) return counts;
  size_t at = 0;
  for (std::string_view rest = types->outputs; !rest.empty() && at < arguments; ++at) {
    const std::string_view argument = TakeWord(&rest);
    const size_t star = argument.find('*');
    counts[at] = 1;
    if (star == std::string_view::npos) continue;
    const Attribute* a = find(star == 0 ? argument.substr(1) : argument.substr(0, star));
    const bool is_list = a != nullptr && a->kind == Attribute::kList;
    const bool is_number = a != nullptr && a->kind == Attribute::kInt && a->i >= 0;
    counts[at] = star == 0 && is_list     ? static_cast<int>(a->ints.size())
                 : star != 0 && is_number ? static_cast<int>(std::min(a->i, kMostOutputs))
                                          : -1;
  }
  return counts;
}

std::string FindWrongType(std::string_view op, std::span<const std::string_view> inputs,
                          const FindAttribute& find, const InputType& type_of) {
  const auto types = TypesOf(op);
  if (!types) return {};
  for (std::string_view rest = types->allowed; !rest.empty();) {
    const std::string_view word = TakeWord(&rest), name = word.substr(0, word.find(':')),
                           numbers = word.substr(name.size() + 1);
    const Attribute* a = find(name);
    if (a == nullptr || IsOfIndices(*types, name)) continue;
    const auto refuse = [&](int64_t type) {
      return StrCat("there is no such operator for ", TypeName(BaseType(type)), " (attribute ",
                    name, "), but for ", formats::NamesOf(numbers, &NameOfType));
    };
    if (a->kind == Attribute::kType && !IsListed(numbers, a->i)) return refuse(a->i);
    for (const int64_t type : a->ints)
      if (a->kind != Attribute::kType && !IsListed(numbers, type)) return refuse(type);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int said = TypeAt(types->inputs, i, find), is = said == kNoType ? said : type_of(i);
    if (is != kNoType && said != is)
      return StrCat("input ", i, " ('", inputs[i], "') is ", TypeName(is), ", where ",
                    TypeName(said), " is expected by its attributes");
  }
  return {};
}

std::string FindWrongForm(std::string_view op, size_t inputs, const FindAttribute& find) {
  const auto types = TypesOf(op);
  if (!types || types->inputs.empty()) return {};
  for (std::string_view rest = types->values; !rest.empty();) {
    const std::string_view word = TakeWord(&rest);
    const size_t end = word.find_first_of("=>#");
    const std::string_view name = word.substr(0, end), said = word.substr(end + 1);
    const Attribute* a = find(name);
    if (a == nullptr) continue;
    if (word[end] == '=' && a->kind == Attribute::kString && !IsWordOf(said, a->s))
      return StrCat("attribute ", name, " is '", a->s, "', expected one of ", said);
    if (word[end] == '>' && a->kind == Attribute::kInt && a->i < NumberIn(said))
      return StrCat("attribute ", name, " is ", a->i, ", expected ", said, " or more");
    if (word[end] == '#' && a->kind == Attribute::kList &&
        static_cast<int64_t>(a->ints.size()) < NumberIn(said))
      return StrCat("attribute ", name, " has ", a->ints.size(), " elements, expected ", said,
                    " or more");
  }
  size_t wanted = 0;
  for (std::string_view rest = types->inputs; !rest.empty();) {
    const std::string_view argument = TakeWord(&rest);
    const size_t star = argument.find('*');
    if (star == std::string_view::npos) {
      ++wanted;
      continue;
    }
    const Attribute* a = find(star == 0 ? argument.substr(1) : argument.substr(0, star));
    if (a == nullptr || (a->kind != Attribute::kInt && a->kind != Attribute::kList)) return {};
    wanted += a->kind == Attribute::kList ? a->ints.size()
                                          : static_cast<size_t>(std::max<int64_t>(a->i, 0));
  }
  if (wanted == inputs) return {};
  return StrCat("has ", inputs, " inputs, expected ", wanted);
}

RankRange RanksOf(std::string_view op, size_t i) {
  const auto types = TypesOf(op);
  RankRange range;
  if (!types) return range;
  std::string_view word;
  for (std::string_view rest = types->ranks; !rest.empty(); --i) {
    word = TakeWord(&rest);
    if (i == 0) break;
    word = {};
  }
  const size_t dash = word.find('-');
  if (word.empty() || dash == 0) return range;
  range.least = static_cast<int>(NumberIn(word.substr(0, dash)));
  range.most = std::min(range.most, static_cast<int>(NumberIn(word.substr(dash + 1))));
  return range;
}

bool TakesNarrowIndices(std::string_view op, size_t i) {
  const auto types = TypesOf(op);
  if (!types) return false;
  for (std::string_view rest = types->indices; !rest.empty();)
    if (TypeNumber(TakeWord(&rest)) == static_cast<int>(i)) return true;
  return false;
}

}  // namespace heddle::tensorflow

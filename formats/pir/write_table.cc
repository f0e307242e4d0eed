#include "formats/pir/write_table.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "core/tables/packed_rows.h"

namespace heddle::pir {
namespace {

struct WriteRow {
  std::string_view old, pir, operands, attributes, results;
};
constexpr std::string_view kWriteText[][5] = {
// sorted by the first column
#include "formats/pir/write_table.inc"
};
constexpr PackedRows<std::size(kWriteText), 5, BytesOfRows(kWriteText)> kWriteRows(kWriteText);

WriteRow WriteRowAt(size_t i) {
  const auto [old, pir, operands, attributes, results] = kWriteRows[i];
  return {old, pir, operands, attributes, results};
}

std::vector<std::string_view> SplitItems(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(by), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// Cuts off the text from the first `mark` on, and returns what follows the mark.
std::string_view CutAt(std::string_view* text, char mark) {
  const size_t at = text->find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view behind = text->substr(at + 1);
  *text = text->substr(0, at);
  return behind;
}

// Removes flags from the end: "?" optional, "*" a list, "~" read by a gradient.
template <typename Item>
void TakeFlags(std::string_view* text, Item* item) {
  while (!text->empty() && std::string_view("?*~").find(text->back()) != std::string_view::npos) {
    item->optional |= text->back() == '?';
    item->list |= text->back() == '*';
    item->computed |= text->back() == '~';
    text->remove_suffix(1);
  }
}

Phrase::Operand OperandOf(std::string_view item) {
  Phrase::Operand operand;
  std::string_view to = CutAt(&item, '=');
  operand.name = item;
  operand.several = CutAt(&to, '#') == "ints";
  TakeFlags(&to, &operand);
  if (!to.starts_with('@')) {
    operand.slot = to == "-" ? std::string_view() : to;
    return operand;
  }
  operand.slots = SplitItems(to.substr(1), '|');
  operand.attribute = operand.slots[0];
  operand.slots.erase(operand.slots.begin());
  return operand;
}

Phrase PhraseOf(const WriteRow& row) {
  Phrase phrase;
  phrase.pir = row.pir;
  for (std::string_view item : SplitItems(row.operands, ' '))
    phrase.operands.push_back(OperandOf(item));
  for (std::string_view item : SplitItems(row.attributes, ' ')) {
    std::string_view to = CutAt(&item, '=');
    if (item.empty()) {  // "=name:1"
      const bool value = CutAt(&to, ':') == "1";
      phrase.fixed.push_back({to, value});
      continue;
    }
    const std::string_view otherwise = CutAt(&to, '=');
    const std::string_view kind = CutAt(&to, ':');
    phrase.attributes.push_back({item, to, kind, otherwise});
  }
  for (std::string_view item : SplitItems(row.results, ' ')) {
    Phrase::Result result;
    std::string_view to = CutAt(&item, '=');
    result.name = item;
    if (const std::string_view same = CutAt(&to, '<'); !same.empty())
      std::from_chars(same.data(), same.data() + same.size(), result.operand);
    TakeFlags(&to, &result);
    result.slot = to;
    phrase.results.push_back(result);
  }
  return phrase;
}

}  // namespace

std::vector<Phrase> PhrasesFor(std::string_view op) {
  std::vector<Phrase> phrases;
  for (size_t row = kWriteRows.LowerBound(op); kWriteRows.Is(row, op); ++row)
    phrases.push_back(PhraseOf(WriteRowAt(row)));
  return phrases;
}

}  // namespace heddle::pir

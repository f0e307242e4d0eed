#include "formats/pir/op_table.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "core/op_registry.h"
#include "core/own_ops/own_registry.h"
#include "core/tables/packed_rows.h"

namespace heddle::pir {
namespace {

struct Row {
  std::string_view pir, old, operands, attributes, results, in_place;
};
constexpr std::string_view kText[][6] = {
// sorted by the first column
#include "formats/pir/op_table.inc"
};
constexpr PackedRows<std::size(kText), 6, BytesOfRows(kText)> kRows(kText);

Row RowAt(size_t i) {
  const auto [pir, old, operands, attributes, results, in_place] = kRows[i];
  return {pir, old, operands, attributes, results, in_place};
}

std::vector<std::string_view> Split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(by), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// "name=rest"
std::pair<std::string_view, std::string_view> Pair(std::string_view item) {
  const size_t at = item.find('=');
  return {item.substr(0, at), item.substr(at + 1)};
}

std::vector<Mapping::Operand> Operands(const Row& row) {
  std::vector<Mapping::Operand> operands;
  for (std::string_view item : Split(row.operands, ' ')) {
    const auto [name, to] = Pair(item);
    Mapping::Operand& operand = operands.emplace_back();
    operand.name = name;
    if (!to.starts_with('@')) {
      operand.slot = to == "-" ? "" : to;
      continue;
    }
    operand.slots = Split(to.substr(1), '|');
    operand.attribute = operand.slots[0];
    operand.slots.erase(operand.slots.begin());
  }
  return operands;
}

template <typename Items>
int IndexOf(const Items& items, std::string_view name) {
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].name == name) return static_cast<int>(i);
  return -1;
}

Mapping MakeMapping(const Row& row) {
  Mapping m;
  m.def = FindOp(row.old);
  m.operands = Operands(row);
  for (std::string_view item : Split(row.attributes, ' ')) {
    const auto [name, to] = Pair(item);
    if (!name.empty()) {
      m.attributes.push_back({name, to});
      continue;
    }
    const size_t colon = to.find(':');
    Mapping::Fixed& fixed = m.fixed.emplace_back();
    fixed.to = to.substr(0, colon);
    std::from_chars(to.data() + colon + 1, to.data() + to.size(), fixed.value);
  }
  for (std::string_view item : Split(row.results, ' ')) {
    const auto [name, to] = Pair(item);
    m.results.push_back({name, to, -1});
  }
  for (std::string_view item : Split(row.in_place, ' ')) {
    const size_t arrow = item.find("<-");
    const int result = IndexOf(m.results, item.substr(0, arrow));
    const int operand = IndexOf(m.operands, item.substr(arrow + 2));
    if (result >= 0) m.results[static_cast<size_t>(result)].operand = operand;
  }
  return m;
}

// An operator that was added from outside: its slots, in their order.
Mapping OwnMapping(const OpDef& def) {
  Mapping m;
  m.def = &def;
  for (const SlotDef& slot : def.inputs()) {
    Mapping::Operand& operand = m.operands.emplace_back();
    operand.name = operand.slot = slot.name;
  }
  for (const SlotDef& slot : def.outputs()) m.results.push_back({slot.name, slot.name, -1});
  return m;
}

const OpDef* FindOwn(std::string_view pir) {
  const OpDef* def = FindOwnOpOfFile(pir);
  return def != nullptr ? def : FindOwnOpOfFile(pir.substr(pir.find('.') + 1));
}

}  // namespace

const OpTable::Entry& OpTable::Get(std::string_view pir) {
  if (const auto found = entries_.find(pir); found != entries_.end()) return found->second;
  Entry& entry = entries_[std::string(pir)];
  size_t row = kRows.LowerBound(pir);
  for (bool first = true; kRows.Is(row, pir); ++row, first = false) {
    Mapping m = MakeMapping(RowAt(row));
    for (size_t r = 0; first && r < m.results.size(); ++r)
      if (m.results[r].operand >= 0)
        entry.in_place.emplace_back(static_cast<int>(r), m.results[r].operand);
    if (m.def != nullptr) entry.mappings.push_back(std::move(m));
  }
  if (entry.mappings.empty())
    if (const OpDef* def = FindOwn(pir)) entry.mappings.push_back(OwnMapping(*def));
  return entry;
}

const std::vector<Mapping>& OpTable::Find(std::string_view pir) { return Get(pir).mappings; }
const std::vector<std::pair<int, int>>& OpTable::InPlace(std::string_view pir) {
  return Get(pir).in_place;
}

}  // namespace heddle::pir

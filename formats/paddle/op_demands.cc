#include "formats/paddle/op_demands.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace heddle::paddle {
namespace {

struct Row {
  std::string_view op, outputs, attributes;
};
constexpr Row kRows[] = {
// sorted by the first column
#include "formats/paddle/op_demands.inc"
};

const Row* Find(std::string_view op) {
  const Row* row =
      std::lower_bound(std::begin(kRows), std::end(kRows), op,
                       [](const Row& a, std::string_view name) { return a.op < name; });
  return row != std::end(kRows) && row->op == op ? row : nullptr;
}

// Calls fn(word) for each word until it returns true.
template <typename Fn>
void EachWord(std::string_view text, Fn&& fn) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (fn(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

bool IsForeign(std::string_view op) {
  const Row* row = Find(op);
  return row != nullptr && row->outputs == "-";
}

std::vector<DemandedOutput> DemandedOutputs(std::string_view op) {
  std::vector<DemandedOutput> outputs;
  if (const Row* row = Find(op); row != nullptr && !IsForeign(op))
    EachWord(row->outputs, [&](std::string_view slot) {
      const bool list = slot.ends_with('*');
      if (list) slot.remove_suffix(1);
      outputs.push_back({slot, list});
      return false;
    });
  return outputs;
}

std::vector<std::pair<std::string_view, std::string_view>> DemandedTexts(std::string_view op) {
  std::vector<std::pair<std::string_view, std::string_view>> texts;
  if (const Row* row = Find(op))
    EachWord(row->attributes, [&](std::string_view word) {
      const size_t at = word.find('=');
      if (at != std::string_view::npos) texts.emplace_back(word.substr(0, at), word.substr(at + 1));
      return false;
    });
  return texts;
}

proto::AttrType DemandedType(std::string_view op, std::string_view attribute) {
  static constexpr std::pair<std::string_view, proto::AttrType> kTypes[] = {
      {"bools", proto::BOOLEANS},    {"long", proto::LONG},       {"longs", proto::LONGS},
      {"float64s", proto::FLOAT64S}, {"float64", proto::FLOAT64}, {"scalar", proto::SCALAR},
      {"scalars", proto::SCALARS}};
  auto found = proto::AttrType(-1);
  const Row* row = Find(op);
  // A gradient has its operator's attributes.
  while (row == nullptr && op.ends_with("_grad")) {
    op.remove_suffix(std::string_view("_grad").size());
    row = Find(op);
  }
  if (row == nullptr) return found;
  EachWord(row->attributes, [&](std::string_view word) {
    const size_t colon = word.find(':');
    if (word.substr(0, colon) != attribute) return false;
    for (const auto& [name, type] : kTypes)
      if (name == word.substr(colon + 1)) found = type;
    return true;
  });
  return found;
}

}  // namespace heddle::paddle

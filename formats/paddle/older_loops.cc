#include "formats/paddle/older_loops.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "core/op_registry.h"
#include "core/tile_ops.h"

namespace heddle::paddle {
namespace {

// Attributes that operators got after the first programs with fused loops were written. Each is
// false by default and is the last number of its operator.
constexpr std::string_view kLater[] = {"keep_nan", "divide_first"};

struct NumberCount {
  size_t at_first = 0;  // numbers of an operator before it got such an attribute
  bool later = false;   // it has got one
};

NumberCount CountNumbers(const OpDef& def) {
  NumberCount count;
  for (const AttrDef& a : def.attrs()) {
    if (!IsNumber(a.default_value)) continue;
    const bool later = std::find(std::begin(kLater), std::end(kLater), a.name) != std::end(kLater);
    count.later = count.later || later;
    count.at_first += later ? 0 : 1;
  }
  return count;
}

}  // namespace

void AddLaterNumbers(const Strings& ops, Floats* values) {
  Floats complete;
  complete.reserve(values->size() + ops.size());
  size_t at = 0;
  for (const std::string& name : ops) {
    const OpDef* const def = FindOp(name);
    if (def == nullptr) return;
    NumberCount count = CountNumbers(*def);
    if (name == "reshape2")  // the number of dimensions, then the dimensions
      count = {at < values->size() && (*values)[at] >= 0
                   ? 1 + static_cast<size_t>(std::min((*values)[at], 1e6))
                   : 1,
               false};
    if (count.at_first > values->size() - at) return;
    const auto first = values->begin() + static_cast<ptrdiff_t>(at);
    complete.insert(complete.end(), first, first + static_cast<ptrdiff_t>(count.at_first));
    if (count.later) complete.push_back(0);
    at += count.at_first;
  }
  if (at == values->size()) *values = std::move(complete);
}

}  // namespace heddle::paddle

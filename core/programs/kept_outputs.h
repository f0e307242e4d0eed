// Outputs whose variables keep their values, since their operator is as in inference.
#pragma once

#include <algorithm>
#include <string_view>
#include <variant>

#include "core/operands/kept.h"
#include "core/programs/ir.h"

namespace heddle::ir {

// Whether the attributes say that the operator does not train.
inline bool IsInference(const Op& op) {
  const auto is_true = [&](std::string_view name) {
    const int a = op.def->FindAttr(name);
    if (a < 0 || std::find(op.var_attrs.begin(), op.var_attrs.end(), a) != op.var_attrs.end())
      return false;
    const bool* const value = std::get_if<bool>(&op.attrs[static_cast<size_t>(a)]);
    return value != nullptr && *value;
  };
  return (is_true("is_test") && !is_true("trainable_statistics")) || is_true("use_global_stats");
}

// Whether the variables of output slot `slot` hold behind the operator what they held before it.
inline bool KeepsOutput(const Op& op, size_t slot) {
  const auto& slots = op.def->outputs();
  if (slot >= slots.size() || (slots[slot].flags & kKeptInInference) == 0 || !IsInference(op))
    return false;
  for (const OpDef::SlotPair& pair : op.def->inplace())
    if (static_cast<size_t>(pair.out) == slot)
      return op.outputs[slot] == op.inputs[static_cast<size_t>(pair.in)];
  return true;
}

}  // namespace heddle::ir

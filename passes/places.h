// Where operators say they run (ir::Op::device): no pass merges operators of different places, and
// what a pass makes runs where the operators ran that it replaces.
#pragma once

#include <algorithm>
#include <vector>

#include "core/ir.h"

namespace heddle::passes {

// Whether the operators at `others` name the place that the one at `first` does, or none as it.
inline bool SamePlace(const std::vector<ir::Op>& ops, int first, const std::vector<int>& others) {
  return std::all_of(others.begin(), others.end(), [&](int at) {
    return ops[static_cast<size_t>(at)].device == ops[static_cast<size_t>(first)].device;
  });
}

// Whether all operators name one place, or none.
inline bool OnePlace(const std::vector<ir::Op>& ops) {
  return std::all_of(ops.begin(), ops.end(),
                     [&](const ir::Op& op) { return op.device == ops[0].device; });
}

}  // namespace heddle::passes

// ScopeValues: what runs of a plan read of the scope's variables, so that a run goes on with the
// values that it began with when somebody replaces a variable meanwhile.
//
// Ownership: keeps the values alive, and with them the memory of parameters. Threads: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/value.h"

namespace heddle {

struct ScopeValues {
  // Others of the same CachedPlan have other numbers.
  uint64_t number = 0;
  // Parallel to Plan::scope_slots. Empty: runs use the variable itself, since they write to it, or
  // since it holds no tensor.
  std::vector<Value> values;
};

}  // namespace heddle

// Functions on functions' attributes that readers need in addition to heddle/functions.h.
#pragma once

#include <vector>

#include "heddle/functions.h"

namespace heddle {

// The value with each placeholder replaced by its value in `attributes`, also in the functions that
// it names; kNone if the value is a placeholder without one.
FunctionValue WithoutPlaceholders(const FunctionValue& value,
                                  const std::vector<NamedFunctionValue>& attributes);
// The same for several values; those that become kNone are left out.
std::vector<NamedFunctionValue> WithoutPlaceholders(
    const std::vector<NamedFunctionValue>& values,
    const std::vector<NamedFunctionValue>& attributes);

}  // namespace heddle

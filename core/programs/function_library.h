// Placeholders in the attributes of functions, for readers of files. The library itself is public:
// heddle/functions.h.
#pragma once

#include <vector>

#include "heddle/functions.h"

namespace heddle {

// The value with that of `attributes` in place of each placeholder, also in the functions that it
// names; kNone for one that is not among them.
FunctionValue WithoutPlaceholders(const FunctionValue& value,
                                  const std::vector<NamedFunctionValue>& attributes);
// The same of many; those that come to nothing are left out.
std::vector<NamedFunctionValue> WithoutPlaceholders(
    const std::vector<NamedFunctionValue>& values,
    const std::vector<NamedFunctionValue>& attributes);

}  // namespace heddle

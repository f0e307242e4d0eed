// What readers ask of functions' attributes, beside what heddle/functions.h has for everybody.
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

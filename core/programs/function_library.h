// Functions on functions' attributes that readers need in addition to heddle/functions.h.
#pragma once

#include <vector>

#include "heddle/functions.h"

namespace heddle {

// The values with those of the attributes of `around` in place of placeholders, also in the
// functions that they name; placeholders that are not among them are left out. Null: there are
// none.
std::vector<NamedFunctionValue> WithoutPlaceholders(const std::vector<NamedFunctionValue>& values,
                                                    const FunctionBody* around);

}  // namespace heddle

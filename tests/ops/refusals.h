// What an operator refuses, and what its examples therefore cannot show.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "tests/ops/lab.h"

namespace heddle::testing {

// Whether the operator knows no value of the attribute but its default: an example of `examples`,
// run with another one, ends with the error that says so (kernels/base/only_value.h).
bool HasOneValue(Lab& lab, const OpDef& op, const AttrDef& attr,
                 const std::vector<const Example*>& examples);

// Whether an example of `examples` has a matrix of so many different integers, none below 0, and
// the operator refuses it with -1 for the first of them.
bool StartsAtZero(Lab& lab, const OpDef& op, const std::vector<const Example*>& examples);

}  // namespace heddle::testing

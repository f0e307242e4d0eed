// Operators with attributes that Paddle lacks, said in operators of its own that mean the same.
#pragma once

#include <optional>

#include "core/programs/ir.h"

namespace heddle::formats {

// Nothing: the operator stands as it is. What only differs in NaN, infinities or the smallest
// differences, and has no such words, stands as it is, too.
std::optional<ir::Op> InPaddlesWords(const ir::Op& op);

}  // namespace heddle::formats

// Rewrites operators with attributes that Paddle lacks as Paddle's operators of the same meaning.
#pragma once

#include <optional>

#include "core/programs/ir.h"

namespace heddle::formats {

// The rewritten operator; nothing: the operator stays as it is. Operators that differ from Paddle's
// only for NaN, infinities or rounding, and that Paddle's cannot express, also stay.
std::optional<ir::Op> InPaddlesWords(const ir::Op& op);

}  // namespace heddle::formats

// Operators that add to the contents of a tensor, so that sums of gradients need no tensor per
// part.
#pragma once

namespace heddle {

// A flag of input slots, besides SlotFlags: an optional operand that is added to the output paired
// with it by OpDef::Inplace. It has the output's dtype and shape.
inline constexpr unsigned kAddend = 256;

}  // namespace heddle

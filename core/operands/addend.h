// Operators that add to what a tensor holds: sums of gradients then need no tensor for each part.
#pragma once

namespace heddle {

// A flag of input slots, besides SlotFlags: an optional operand that is added to the output that
// OpDef::Inplace pairs it with, and that has the output's dtype and shape.
inline constexpr unsigned kAddend = 256;

}  // namespace heddle

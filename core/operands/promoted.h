// Operators whose kernels take complex numbers, and whose programs may give them a complex operand
// beside a real one.
#pragma once

namespace heddle {

// A flag of input slots, besides SlotFlags: where one operand of such slots is complex, the plan
// has the others cast to the complex type that holds all of them (executor/plan/transfers).
// Operands that are integers beside complex ones are errors.
inline constexpr unsigned kPromoted = 2048;

}  // namespace heddle

// Operators whose kernels accept complex numbers, and which may have a complex operand beside a
// real one.
#pragma once

namespace heddle {

// A flag of input slots, besides SlotFlags: if one operand of such slots is complex, the plan casts
// the others to the complex type that holds all of them (executor/plan/transfers). An integer
// operand beside a complex one is an error.
inline constexpr unsigned kPromoted = 2048;

}  // namespace heddle

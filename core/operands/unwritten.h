// Outputs that an operator does not write in every call.
#pragma once

namespace heddle {

// A slot flag, besides those of core/op_def.h: for some operands and attributes the operator leaves
// this output unwritten, which its shape function states by not setting it. The variable is then
// empty: reading or fetching it is an error. All other outputs are written in every call.
inline constexpr unsigned kMayBeUnwritten = 8192;

}  // namespace heddle

// Outputs that an operator does not write in every call.
#pragma once

namespace heddle {

// A slot flag, beside those of core/op_def.h: for some operands and attributes the operator leaves
// this output unwritten. Its shape function says so by not setting the output. The variable then
// holds nothing: reading or fetching it is an error. An operator writes each other output in every
// call.
inline constexpr unsigned kMayBeUnwritten = 8192;

}  // namespace heddle

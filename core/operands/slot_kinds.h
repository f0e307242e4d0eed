// The kinds of variables that a slot accepts, besides SlotFlags. A slot without any of these flags
// accepts only tensors. A program whose variables are declared otherwise is refused when it is made
// (core/programs/op_check.h). Operators that run blocks list whatever their blocks touch, so their
// lists accept every kind.
#pragma once

#include "core/op_def.h"

namespace heddle {

inline constexpr unsigned kTakesRows = 1u << 16;      // selected rows
inline constexpr unsigned kTakesArray = 1u << 17;     // an array of tensors
inline constexpr unsigned kTakesOther = 1u << 18;     // strings, tables, readers, sparse tensors
inline constexpr unsigned kTakesNoTensor = 1u << 19;  // only the kinds above
inline constexpr unsigned kTakesAll = kTakesRows | kTakesArray | kTakesOther;
inline constexpr unsigned kArrayOnly = kTakesArray | kTakesNoTensor;
inline constexpr unsigned kOtherOnly = kTakesOther | kTakesNoTensor;

}  // namespace heddle

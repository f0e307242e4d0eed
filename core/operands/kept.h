// Outputs that an operator names and does not change in inference.
#pragma once

namespace heddle {

// A slot flag, besides those of core/op_def.h: in inference (ir::IsInference) the variable of this
// output keeps its value, if it is also that of the input paired with it by OpDef::Inplace. Where
// no input is paired, the operator then writes nothing to it.
inline constexpr unsigned kKeptInInference = 16384;

}  // namespace heddle

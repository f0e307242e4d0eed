// Products with weights: which operand is a parameter, and which of its axes counts outputs.
#pragma once

#include <optional>
#include <string>

#include "gradient/tuning/edit.h"

namespace heddle::gradient {

struct Weighted {
  ir::VarId weight = ir::kNoVar;  // the parameter
  int output_axis = 0;            // of the parameter
  ir::VarId data = ir::kNoVar;    // the other operand
  ir::VarId bias = ir::kNoVar;    // of the operator itself; kNoVar: none
  bool convolution = false;
  int64_t window = 1;  // of a convolution: elements of the kernel per pair of channels
};

// The product that operator `at` of block 0 is; nothing: none, or not with a parameter. The
// parameter may be copied or transposed before.
std::optional<Weighted> WeightedAt(const Edit& edit, const ir::Program& program, int at);

}  // namespace heddle::gradient

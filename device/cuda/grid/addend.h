// The operand that a result is added to (core/operands/addend.h).
#pragma once

#include "device/cuda/grid/grid.h"

namespace heddle::HEDDLE_GRID {

// Puts the addend, if there is one, where the result is to be added to it: whether there is one.
inline Result<bool> BeginWith(Queue& queue, const Tensor* addend, Tensor& to) {
  if (addend == nullptr) return false;
  if (addend->raw() != to.raw())
    HEDDLE_RETURN_IF_ERROR(queue.Copy(to.mutable_raw(), addend->raw(), to.bytes()));
  return true;
}

}  // namespace heddle::HEDDLE_GRID

// Reducing the operands of several ranks, element by element.
#pragma once

#include <cstdint>
#include <span>

#include "heddle/tensor.h"
#include "ranks/communicator.h"

namespace heddle {

// Whether values of the dtype can be reduced.
bool IsReducible(DType dtype);

// Elements [begin, end) of all `in`, reduced, to every one of `out` at the same place, but for
// `shift` elements (out[begin - shift]). An operand may be an output as well, if at the same place:
// an element of all operands is read before it is written. Neighbouring ranks are taken together
// first: (0 1) (2 3) …, then pairs of those. Precondition: IsReducible.
void ReduceRange(Reduction how, DType dtype, std::span<const std::byte* const> in,
                 std::span<std::byte* const> out, int64_t begin, int64_t end, int64_t shift);

}  // namespace heddle

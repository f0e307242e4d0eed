// Sizes of tensors; a product that overflows gives a size that is certainly too large.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heddle/dtype.h"
#include "heddle/shape.h"

namespace heddle {

// More bytes than any machine has; a sum of a million of these still fits in size_t.
inline constexpr size_t kImpossibleBytes = size_t{1} << 43;

// The bytes of a tensor, at most kImpossibleBytes. Precondition: the dimensions are known.
inline size_t BytesFor(DType dtype, const Shape& shape) {
  unsigned __int128 bytes = SizeOf(dtype);
  bool empty = false, huge = false;
  for (int64_t d : shape) {
    empty = empty || d == 0;
    bytes *= static_cast<uint64_t>(d < 0 ? 0 : d);
    huge = huge || bytes >= kImpossibleBytes;
    if (huge) bytes = kImpossibleBytes;
  }
  if (empty) return 0;
  return huge ? kImpossibleBytes : static_cast<size_t>(bytes);
}

}  // namespace heddle

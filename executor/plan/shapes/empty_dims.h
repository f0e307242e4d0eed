// A limit for tensors without elements.
#pragma once

#include "core/error.h"
#include "heddle/shape.h"

namespace heddle {

// An error if a tensor has no elements, but its other dimensions multiply to more than 2^31:
// operators iterate over them for nothing, which would take too long.
inline Status CheckEmptyDims(const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 31;
  int64_t others = 1;
  bool empty = false;
  for (const int64_t d : shape) {
    empty = empty || d == 0;
    if (d > 0 && others <= kMost) others = d > kMost ? kMost + 1 : others * d;
  }
  if (!empty || others <= kMost) return Status::Ok();
  return InvalidArgument("a tensor of shape ", shape.ToString(),
                         " has no elements, and its other dimensions multiply to more than ",
                         kMost);
}

}  // namespace heddle

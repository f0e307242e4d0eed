// A tensor as lines along one axis.
#pragma once

#include "core/shapes.h"
#include "device/cuda/grid/grid_body.h"

namespace heddle::HEDDLE_GRID {

// `count` lines of n elements, which are `inner` apart.
struct Lines {
  int64_t count = 1, n = 1, inner = 1;
  HEDDLE_BODY int64_t Begin(int64_t line) const { return line / inner * n * inner + line % inner; }
};

// With `flatten`, and for a scalar, all elements are one line.
inline Result<Lines> LinesOf(const Shape& s, int64_t axis_attr, bool flatten = false) {
  if (flatten || s.rank() == 0) return Lines{1, s.numel(), 1};
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(axis_attr, s.rank()));
  const int64_t inner = s.Product(axis + 1, s.rank());
  return Lines{s.Product(0, axis) * inner, s[axis], inner};
}

}  // namespace heddle::HEDDLE_GRID

// Operators whose outputs are parts of an input, perhaps with gaps, or the input with permuted
// dimensions: slices, splits, transposes. If all readers of the outputs accept strides, or the part
// has no gaps, the plan makes them views of the input, and no kernel runs.
//
// Such an operator declares the trait kWindows. The tensor is in its first input slot, the parts
// are in its first output slot, and its prepared state derives from WindowState.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "heddle/tensor.h"

namespace heddle {

// A flag of input slots, besides SlotFlags: the operand may be such a view, with gaps or permuted
// dimensions, and the kernel reads it by Tensor::strides().
inline constexpr unsigned kByStrides = 128;
// A flag of input slots, besides SlotFlags: the operand may be such a view, if its last dimension
// has no gaps and its rows along that dimension have a constant distance (RowStep).
inline constexpr unsigned kByRows = 1024;
// A trait, besides OpTraits: the outputs may be views of the input.
inline constexpr unsigned kWindows = 512;

// Which part of an input an output is.
struct Window {
  std::array<int64_t, Shape::kMaxRank> start{};  // per dimension of the input: the first element
  // Per dimension of the output: the dimension of the input that it follows, and the distance of
  // its elements there, which is positive, or unused if there is one element.
  std::array<int, Shape::kMaxRank> axis{};
  std::array<int64_t, Shape::kMaxRank> step{};
};

// The distance of a tensor's rows, in elements, if the dimensions from `at` on form a row; -1: the
// rows have gaps, or no constant distance. Precondition: the strides, one per dimension, are
// positive.
inline int64_t RowStep(const Shape& shape, std::span<const int64_t> strides, int at) {
  int64_t dense = 1, step = -1, count = 1;  // count: rows in the dimensions visited
  for (int d = shape.rank() - 1; d >= 0; --d) {
    if (shape[d] == 1) continue;
    const int64_t stride = strides[static_cast<size_t>(d)];
    if (d >= at) {
      if (stride != dense) return -1;
      dense *= shape[d];
      continue;
    }
    if (step < 0) step = stride;
    if (stride != step * count) return -1;
    count *= shape[d];
  }
  return step < 0 ? shape.Product(at, shape.rank()) : step;
}
inline int64_t RowStep(const Tensor& x, int at) {
  return x.is_contiguous() ? x.shape().Product(at, x.rank()) : RowStep(x.shape(), x.strides(), at);
}

class WindowState {
 public:
  virtual ~WindowState() = default;
  // False: output `i` of the first slot is not a part of the input, or the part is not known.
  virtual bool WindowOf(int i, Window* window) const = 0;
};

}  // namespace heddle

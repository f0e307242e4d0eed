// Rectangular, possibly strided parts of a tensor: resolution of starts, ends and steps, and the
// copies out of and into such a part.
#pragma once

#include "kernels/base/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {

// One range per axis of the tensor: elements start, start + step, … (count of them).
struct SliceSpec {
  int rank = 0;
  std::array<int64_t, Shape::kMaxRank> start{}, step{}, count{};
  Shape counts() const { return Shape(std::span(count.data(), static_cast<size_t>(rank))); }
  int64_t numel() const { return counts().numel(); }
};

// The whole of `x`. Dimensions that are not known keep a count of -1.
SliceSpec WholeSlice(const Shape& x);
// Resolves Python's start:end:step of one axis (negative values count from the end, both are
// clamped). With a negative step an end of -1 is the place before element 0, as Paddle has it.
void SetRange(SliceSpec* spec, int axis, int64_t dim, int64_t start, int64_t end, int64_t step);
// As SetRange for every axis that `axes` names; ends of unknown dimensions or values give count -1.
// `decrease` are the axes that are single elements, `flags` the program's infer_flags.
Status ResolveSlice(const Shape& x, std::span<const int64_t> axes, const IntArgs& starts,
                    const IntArgs& ends, const IntArgs* steps, const Ints& decrease,
                    const Ints& flags, SliceSpec* spec);
// `shape` without the dimensions `decrease`, each of which must be 1 (or not known).
Result<Shape> DropAxes(const Shape& shape, const Ints& decrease);

// dense[...] = x[part] and x[part] = dense[...]; `x` gives the full tensor's shape.
StridedCopy CopyOutOf(const Shape& x, const SliceSpec& part, size_t element_size);
StridedCopy CopyInto(const Shape& x, const SliceSpec& part, size_t element_size);

}  // namespace heddle

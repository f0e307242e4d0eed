// Strided slices with masks: what begin, end, strides and their five masks mean for a shape.
#pragma once

#include "kernels/operands/operands.h"

namespace heddle {

// The elements that a slice names: along input axis i, count[i] of them from start[i] on, step[i]
// apart. -1 stands for a count that is not known.
struct MaskedSlice {
  std::array<int64_t, Shape::kMaxRank> start{}, step{};
  Shape count;  // of the input's rank
  Shape out;    // the same with new axes, and without those that an index took away
};

struct SliceMasks {
  int64_t begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink = 0;
};
SliceMasks SliceMasksOf(const OpContext& ctx);
void DeclareSliceMasks(OpDef& op);

// `n` positions are given. Values that are not known are null; dimensions of `in` may be -1.
Result<MaskedSlice> MakeMaskedSlice(const Shape& in, int64_t n, const ShortInts* begin,
                                    const ShortInts* end, const ShortInts* strides,
                                    const SliceMasks& masks);

// From slots begin, end and strides.
template <typename Context>
Result<MaskedSlice> MaskedSliceIn(const Context& ctx, const Shape& in) {
  ShortInts lists[3];
  const ShortInts* known[3] = {};
  const Key keys[3] = {"begin", "end", "strides"};
  for (int i = 0; i < 3; ++i) {
    const Shape& s = ShapeIn(ctx, keys[i]);
    if (s.rank() != 1 || s[0] != ShapeIn(ctx, "begin")[0])
      return InvalidArgument(keys[i].name, " has shape ", s.ToString(),
                             ", expected a vector, begin, end and strides of one length");
    if (ValueIn(ctx, keys[i]) == nullptr) continue;
    HEDDLE_ASSIGN_OR_RETURN(lists[i], IntsIn(ctx, keys[i]));
    known[i] = &lists[i];
  }
  return MakeMaskedSlice(in, ShapeIn(ctx, "begin")[0], known[0], known[1], known[2],
                         SliceMasksOf(ctx));
}

// The slice of a tensor of shape `in` as a copy; `forward`: out of the tensor, else into it.
StridedCopy SliceCopy(size_t element_size, const Shape& in, const MaskedSlice& spec, bool forward);

}  // namespace heddle

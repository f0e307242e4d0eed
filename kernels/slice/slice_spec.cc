#include "kernels/slice/slice_spec.h"

#include <bit>

namespace heddle {
namespace {

// Positions of one axis. `d` is known, and the step is not 0.
void SetRange(int64_t d, const int64_t* begin, const int64_t* end, int64_t step, int axis,
              MaskedSlice* spec) {
  const auto clamp = [&](int64_t v) {
    const int64_t from = v < 0 ? (v < -d ? -1 : v + d) : v;
    return step > 0 ? std::clamp<int64_t>(v < -d ? 0 : from, 0, d)
                    : std::clamp<int64_t>(from, -1, d - 1);
  };
  const int64_t first = begin == nullptr ? (step > 0 ? 0 : d - 1) : clamp(*begin);
  const int64_t last = end == nullptr ? (step > 0 ? d : -1) : clamp(*end);
  const int64_t span = step > 0 ? last - first : first - last;
  const uint64_t size = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  spec->start[axis] = first;
  spec->step[axis] = step;
  spec->count[axis] =
      span <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(span) - 1) / size + 1);
}

}  // namespace

SliceMasks SliceMasksOf(const OpContext& ctx) {
  return {ctx.Int("begin_mask"), ctx.Int("end_mask"), ctx.Int("ellipsis_mask"),
          ctx.Int("new_axis_mask"), ctx.Int("shrink_axis_mask")};
}

void DeclareSliceMasks(OpDef& op) {
  op.Attr("begin_mask", 0).Attr("end_mask", 0).Attr("ellipsis_mask", 0);
  op.Attr("new_axis_mask", 0).Attr("shrink_axis_mask", 0);
}

Result<MaskedSlice> MakeMaskedSlice(const Shape& in, int64_t n, const ShortInts* begin,
                                    const ShortInts* end, const ShortInts* strides,
                                    const SliceMasks& masks) {
  if (n < 0 || n > 31)
    return InvalidArgument("begin, end and strides have ", n, " elements, expected at most 31");
  const auto bit = [](int64_t mask, int64_t i) { return ((mask >> i) & 1) != 0; };
  const int64_t used = (int64_t{1} << n) - 1;
  if (std::popcount(static_cast<uint64_t>(masks.ellipsis & used)) > 1)
    return InvalidArgument("ellipsis_mask names several positions, expected one");
  const int64_t added =
      std::popcount(static_cast<uint64_t>(masks.new_axis & ~masks.ellipsis & used));
  const bool has_ellipsis = (masks.ellipsis & used) != 0;
  const int64_t taken = n - added - (has_ellipsis ? 1 : 0);
  if (taken > in.rank())
    return InvalidArgument("begin has ", n, " elements, of which ", taken,
                           " name axes, for a tensor of shape ", in.ToString());
  if (in.rank() + added > Shape::kMaxRank)
    return InvalidArgument("the slice of ", in.ToString(), " has more than ", Shape::kMaxRank,
                           " dimensions");
  MaskedSlice spec;
  spec.count = in;
  spec.step.fill(1);
  int axis = 0;
  const auto whole = [&](int64_t axes) {
    for (; axes > 0; --axes, ++axis) spec.out.push_back(in[axis]);
  };
  for (int64_t i = 0; i < n; ++i) {
    if (bit(masks.ellipsis, i)) {
      whole(in.rank() - taken);
      continue;
    }
    if (bit(masks.new_axis, i)) {
      spec.out.push_back(1);
      continue;
    }
    const auto at = static_cast<size_t>(i);
    const int64_t d = in[axis];
    const int64_t* const b = begin == nullptr ? nullptr : &(*begin)[at];
    const int64_t* const e = end == nullptr ? nullptr : &(*end)[at];
    const int64_t* const s = strides == nullptr ? nullptr : &(*strides)[at];
    if (s != nullptr && *s == 0)
      return InvalidArgument("strides holds 0 at position ", i, ", expected another number");
    if (bit(masks.shrink, i)) {
      if (s != nullptr && *s < 0)
        return InvalidArgument("strides holds ", *s, " at position ", i,
                               ", where an index is taken, expected 1");
      if (b != nullptr && d >= 0) {
        const int64_t index = *b < 0 ? *b + d : *b;
        if (index < 0 || index >= d)
          return OutOfRange("begin holds ", *b, " for axis ", axis, " of ", in.ToString(),
                            ", expected -", d, " to ", d - 1);
        spec.start[axis] = index;
      }
      spec.count[axis++] = 1;
      continue;
    }
    const bool no_begin = bit(masks.begin, i), no_end = bit(masks.end, i);
    if (no_begin && no_end && s != nullptr && *s == 1) {
      // all of it, whether known or not
    } else if (s == nullptr || (b == nullptr && !no_begin) || (e == nullptr && !no_end) || d < 0) {
      spec.count[axis] = -1;
    } else {
      SetRange(d, no_begin ? nullptr : b, no_end ? nullptr : e, *s, axis, &spec);
    }
    spec.out.push_back(spec.count[axis++]);
  }
  whole(in.rank() - axis);
  return spec;
}

StridedCopy SliceCopy(size_t element_size, const Shape& in, const MaskedSlice& spec, bool forward) {
  const auto strides = RowMajorStrides(in), dense = RowMajorStrides(spec.count);
  std::array<CopyDim, Shape::kMaxRank> dims;
  int64_t offset = 0;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t step = spec.count[i] > 1 ? strides[i] * spec.step[i] : strides[i];
    dims[i] = {spec.count[i], forward ? step : dense[i], forward ? dense[i] : step};
    offset += spec.start[i] * strides[i];
  }
  return {element_size, std::span(dims.data(), static_cast<size_t>(in.rank())),
          forward ? offset : 0, forward ? 0 : offset};
}

}  // namespace heddle

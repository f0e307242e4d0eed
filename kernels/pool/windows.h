// Windows that slide over any number of spatial dimensions: geometry and loops for convolutions and
// pooling.
#pragma once

#include "kernels/operands/operands.h"

namespace heddle {

// Spatial dimensions alone. Lists have one element per dimension.
struct Windows {
  static constexpr int kMaxRank = Shape::kMaxRank - 2;
  int rank = 0;
  Shape in, kernel, out;
  std::array<int64_t, kMaxRank> stride{}, dilation{}, pad_lo{}, pad_hi{};

  // The input position of the first tap of output position o.
  int64_t Begin(int axis, int64_t o) const { return o * stride[axis] - pad_lo[axis]; }
};

// From attributes pads, strides and (where the operator has them) auto_pad and dilations. `in` is
// the shape behind batch and channels.
Result<Windows> WindowsOf(const OpContext& ctx, const Shape& in, const Shape& kernel,
                          bool ceil_mode);
// Declares these attributes.
void DeclareWindows(OpDef& op, bool dilations);
// The spatial part of [N, C, …], which has at least one dimension.
Result<Shape> SpatialOf(const Shape& x, Key key);
// Attribute kernel_shape, or the spatial part of `filter` where that is given; a contradiction is
// an error. Without a filter the attribute is needed.
Result<Shape> KernelOf(const OpContext& ctx, const Shape* filter, int rank);

// One position of a window: the taps [lo, hi) of each axis lie inside the input.
struct WindowAt {
  std::array<int64_t, Windows::kMaxRank> begin{}, lo{}, hi{};
  int64_t inside = 1;  // how many taps those are
};
WindowAt WindowOf(const Windows& w, const Walk<1>& position);

// fn(offset in the plane, offset in the kernel) for every tap inside the input, in order.
template <typename Fn>
void ForEachTap(const Windows& w, const WindowAt& at, const Fn& fn) {
  if (at.inside == 0) return;
  const int last = w.rank - 1;
  std::array<int64_t, Windows::kMaxRank> tap = at.lo;
  for (;;) {
    int64_t pixel = 0, k = 0;
    for (int i = 0; i < last; ++i) {
      pixel = (pixel + at.begin[i] + tap[i] * w.dilation[i]) * w.in[i + 1];
      k = (k + tap[i]) * w.kernel[i + 1];
    }
    for (int64_t j = at.lo[last]; j < at.hi[last]; ++j)
      fn(pixel + at.begin[last] + j * w.dilation[last], k + j);
    int i = last - 1;
    while (i >= 0 && ++tap[i] == at.hi[i]) {
      tap[i] = at.lo[i];
      --i;
    }
    if (i < 0) return;
  }
}

// The taps of `channels` planes as columns: row (channel, tap), column of the output position. What
// lies outside the input is 0.
template <typename T>
void ToColumns(const Windows& w, const T* x, int64_t channels, T* columns);
// Adds columns up to planes, which were set before.
template <typename T>
void AddColumns(const Windows& w, const T* columns, int64_t channels, T* x);

}  // namespace heddle

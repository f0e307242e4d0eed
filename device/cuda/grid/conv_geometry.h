// Two-dimensional convolutions and poolings as numbers that fit into a kernel's arguments.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/op_context.h"
#include "device/cuda/grid/grid_body.h"

namespace heddle::HEDDLE_GRID {

// One of the two spatial dimensions.
struct ConvAxis {
  int32_t in = 1, out = 1, kernel = 1, stride = 1, pad = 0, dilation = 1;
};

// A convolution from `in` to `out`. For a transposed convolution `in` is the output.
struct ConvShape {
  bool channels_last = false;
  int64_t batch = 0, in_c = 0, out_c = 0, groups = 1;
  ConvAxis h, w;

  HEDDLE_BODY int64_t in_size() const { return static_cast<int64_t>(h.in) * w.in; }
  HEDDLE_BODY int64_t out_size() const { return static_cast<int64_t>(h.out) * w.out; }
  HEDDLE_BODY int64_t taps() const { return static_cast<int64_t>(h.kernel) * w.kernel; }
  // The index of channel c at pixel (y, x) of image n, in the input and in the output.
  HEDDLE_BODY int64_t InAt(int64_t n, int64_t c, int64_t y, int64_t x) const {
    const int64_t pixel = y * w.in + x;
    return channels_last ? (n * in_size() + pixel) * in_c + c : (n * in_c + c) * in_size() + pixel;
  }
  HEDDLE_BODY int64_t OutAt(int64_t n, int64_t c, int64_t y, int64_t x) const {
    const int64_t pixel = y * w.out + x;
    return channels_last ? (n * out_size() + pixel) * out_c + c
                         : (n * out_c + c) * out_size() + pixel;
  }
  // The operand of the products is the patches of the image, or the image itself where both are
  // equal.
  bool patches_are_image() const {
    return taps() == 1 && h.stride == 1 && w.stride == 1 && h.pad == 0 && w.pad == 0 &&
           h.in == h.out && w.in == w.out;
  }
};

// From an operator's attributes; `in` and `out` are the convolution's sides.
inline ConvShape ConvShapeOf(const OpContext& ctx, const Shape& in, const Shape& filter,
                             const Shape& out, bool transposed) {
  ConvShape g;
  g.channels_last = ctx.Str("data_format") == "NHWC";
  const int channel = g.channels_last ? 3 : 1, first = g.channels_last ? 1 : 2;
  g.batch = in[0];
  g.in_c = in[channel], g.out_c = out[channel];
  g.groups = ctx.Int("groups");
  if (g.groups == 0) {  // as many as the channels say
    const int64_t channels = transposed ? g.out_c : g.in_c;
    g.groups = filter[1] > 0 ? std::max<int64_t>(1, channels / filter[1]) : 1;
  }
  const Ints &pads = ctx.IntList("paddings"), &strides = ctx.IntList("strides"),
             &dilations = ctx.IntList("dilations");
  const std::string& algorithm = ctx.Str("padding_algorithm");
  for (int d = 0; d < 2; ++d) {
    ConvAxis& a = d == 0 ? g.h : g.w;
    const auto at = static_cast<size_t>(d);
    a.in = static_cast<int32_t>(in[first + d]), a.out = static_cast<int32_t>(out[first + d]);
    a.kernel = static_cast<int32_t>(filter[2 + d]);
    a.stride = static_cast<int32_t>(strides.at(at));
    a.dilation = static_cast<int32_t>(dilations.at(at));
    if (algorithm == "SAME" || algorithm == "SAME_DILATED") {
      if (algorithm == "SAME") a.dilation = 1;
      const int32_t size = transposed ? a.out : a.in;
      const int32_t steps = (size + a.stride - 1) / a.stride;
      const int32_t reach = (a.kernel - 1) * a.dilation + 1;
      a.pad = std::max(0, (steps - 1) * a.stride + reach - size) / 2;
    } else if (algorithm != "VALID") {
      a.pad = static_cast<int32_t>(pads.size() == 2 ? pads[at] : pads.at(2 * at));
    }
  }
  return g;
}

}  // namespace heddle::HEDDLE_GRID

// TensorFlow's sliding windows: attributes in the order of data_format, SAME padding, layouts.
#pragma once

#include <algorithm>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/op_context.h"

namespace heddle {

// Two or three spatial dimensions; lists have one element for each.
struct TfWindows {
  bool channels_last = true;
  int spatial = 2;
  int64_t batch = 0, channels = 0;
  std::array<int64_t, 3> in{}, kernel{}, stride{}, dilation{}, pad_lo{}, pad_hi{}, out{};

  int64_t in_size() const { return Product(in); }
  int64_t out_size() const { return Product(out); }
  // [N, spatial…, C] or [N, C, spatial…].
  Shape Layout(const std::array<int64_t, 3>& size, int64_t c) const {
    Shape s{batch};
    if (!channels_last) s.push_back(c);
    for (int i = 0; i < spatial; ++i) s.push_back(size[i]);
    if (channels_last) s.push_back(c);
    return s;
  }
  // Elements from one position, and from one channel, to the next in a tensor of `size` positions.
  int64_t pixel_step() const { return channels_last ? channels : 1; }
  int64_t channel_step(int64_t size) const { return channels_last ? 1 : size; }

 private:
  int64_t Product(const std::array<int64_t, 3>& a) const {
    int64_t n = 1;
    for (int i = 0; i < spatial; ++i) n *= a[i];
    return n;
  }
};

// Attributes of windows that some operators have.
struct TfWindowAttrs {
  bool ksize = false, explicit_paddings = false, dilations = false;
};
void DeclareTfWindows(OpDef& op, const TfWindowAttrs& has);

// From attributes strides, padding and data_format, and from explicit_paddings and dilations where
// the operator has them. `input` is static; `kernel`: the spatial sizes, or those of attribute
// ksize.
Result<TfWindows> TfWindowsOf(const OpContext& ctx, const Shape& input,
                              const std::array<int64_t, 3>* kernel);

// Taps `begin` up to `end` of a side lie inside the input.
struct TapRange {
  int64_t begin, end;
};
// Tap k of `kernel` reads position `first` + k `dilation` of `in`. Windows may be far larger than
// what they read, so that no loop tries their taps one by one.
inline TapRange TapsInside(int64_t first, int64_t dilation, int64_t kernel, int64_t in) {
  const auto from = [dilation](int64_t n) { return n <= 0 ? 0 : (n - 1) / dilation + 1; };
  return {std::min(from(-first), kernel), std::min(from(in - first), kernel)};
}

// fn(offset of the input position, number of the tap) for all taps of output position `at` (one
// index for each spatial dimension) that lie inside the input.
template <typename Fn>
void ForEachTfTap(const TfWindows& w, const std::array<int64_t, 3>& at, Fn&& fn) {
  std::array<int64_t, 3> first{};
  std::array<TapRange, 3> taps{{{0, 1}, {0, 1}, {0, 1}}};
  for (int i = 0; i < w.spatial; ++i) {
    first[i] = at[i] * w.stride[i] - w.pad_lo[i];
    taps[i] = TapsInside(first[i], w.dilation[i], w.kernel[i], w.in[i]);
  }
  const auto place = [&](int i, int64_t k) { return first[i] + k * w.dilation[i]; };
  const int last = w.spatial - 1;
  const TapRange zs = w.spatial == 3 ? taps[0] : TapRange{0, 1};
  for (int64_t z = zs.begin; z < zs.end; ++z) {
    const int64_t pz = w.spatial == 3 ? place(0, z) : 0;
    for (int64_t y = taps[last - 1].begin; y < taps[last - 1].end; ++y) {
      const int64_t py = place(last - 1, y);
      for (int64_t x = taps[last].begin; x < taps[last].end; ++x) {
        const int64_t px = place(last, x);
        fn((pz * w.in[last - 1] + py) * w.in[last] + px,
           (z * w.kernel[last - 1] + y) * w.kernel[last] + x);
      }
    }
  }
}

// fn(indices, number) for the output positions of one image, in order.
template <typename Fn>
void ForEachTfPosition(const TfWindows& w, Fn&& fn) {
  std::array<int64_t, 3> at{};
  for (const auto part : Stretches(w.out_size()))
    for (int64_t i = part.begin; i < part.end; ++i) {
      fn(at, i);
      for (int d = w.spatial - 1; d >= 0; --d) {
        if (++at[d] < w.out[d]) break;
        at[d] = 0;
      }
    }
}

}  // namespace heddle

#include "kernels/conv_ops/tf_convolution.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/pool/tf_windows.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {

Result<ConvGeometry> TfConvGeometry(const OpContext& ctx, const Shape& input, const Shape& filter,
                                    bool depthwise) {
  if (filter.rank() != input.rank() || (input.rank() != 4 && input.rank() != 5))
    return InvalidArgument("input has shape ", input.ToString(), " and filter ", filter.ToString(),
                           ", expected both of rank 4 or 5");
  std::array<int64_t, 3> kernel{};
  for (int i = 0; i + 2 < filter.rank(); ++i) {
    kernel[i] = filter[i];
    if (kernel[i] < 1)
      return InvalidArgument("filter has shape ", filter.ToString(), ", expected no empty side");
  }
  HEDDLE_ASSIGN_OR_RETURN(const TfWindows w, TfWindowsOf(ctx, input, &kernel));
  const int64_t depth = filter[filter.rank() - 2], last = filter[filter.rank() - 1];
  ConvGeometry g;
  g.channels_last = w.channels_last;
  g.spatial = w.spatial;
  g.batch = w.batch;
  g.in_c = w.channels;
  g.out_c = depthwise ? depth * last : last;
  if (depth < 1 || g.in_c % depth != 0 || (depthwise && depth != g.in_c))
    return InvalidArgument("filter ", filter.ToString(), " does not fit the ", g.in_c,
                           " channels of input ", input.ToString());
  g.groups = depthwise ? g.in_c : g.in_c / depth;
  if (g.groups < 1 || g.out_c % g.groups != 0)
    return InvalidArgument("filter ", filter.ToString(), " has ", g.out_c,
                           " output channels, not a multiple of ", g.groups, " groups");
  for (int i = 0; i < w.spatial; ++i) {
    const int to = 3 - w.spatial + i;
    g.in[to] = w.in[i];
    g.out[to] = w.out[i];
    g.kernel[to] = w.kernel[i];
    g.stride[to] = w.stride[i];
    g.dilation[to] = w.dilation[i];
    g.pad_lo[to] = w.pad_lo[i];
    g.pad_hi[to] = w.pad_hi[i];
  }
  return g;
}

Shape HeddleFilter(const ConvGeometry& g) {
  Shape filter{g.out_c, g.in_c / g.groups};
  for (int i = 3 - g.spatial; i < 3; ++i) filter.push_back(g.kernel[i]);
  return filter;
}

// heddle: (o * in + i) * taps + t; TensorFlow: (t * in + i) * out + o. Output channel c * M + m of
// a depthwise filter lies where its last two dimensions, seen as one, have it.
void TurnFilter(const KernelContext& ctx, const Shape& heddle, const void* from, void* to,
                size_t size, bool to_heddle) {
  const int64_t out = heddle[0], in = heddle[1], taps = heddle.Product(2, heddle.rank());
  std::array<CopyDim, 3> dims{{{out, 1, in * taps}, {in, out, taps}, {taps, in * out, 1}}};
  if (!to_heddle) {
    for (CopyDim& d : dims) std::swap(d.src, d.dst);
    std::swap(dims[0], dims[2]);
  }
  StridedCopy(size, dims).Run(ctx, from, to);
}

}  // namespace heddle

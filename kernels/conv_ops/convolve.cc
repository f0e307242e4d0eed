#include "kernels/conv_ops/convolve.h"

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"

namespace heddle {

Result<Convolution> ConvolutionOf(const OpContext& ctx, const Shape& x, const Shape& w) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape in, SpatialOf(x, "X"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape kernel, KernelOf(ctx, &w, in.rank()));
  Convolution c;
  c.batch = x[0];
  c.in_channels = x[1];
  c.out_channels = w[0];
  c.groups = ctx.Int("group");
  if (c.groups < 1 || c.out_channels % c.groups != 0 || c.in_channels != w[1] * c.groups)
    return InvalidArgument("a filter ", w.ToString(), " in ", c.groups,
                           " groups does not fit the input ", x.ToString());
  HEDDLE_ASSIGN_OR_RETURN(c.windows, WindowsOf(ctx, in, kernel, false));
  return c;
}

template <typename T>
void Convolve(const KernelContext& ctx, const Convolution& c, const T* x, const T* w, T* y) {
  const int64_t channels = c.in_channels / c.groups, filters = c.out_channels / c.groups;
  const int64_t places = c.windows.out.numel(), plane = c.windows.in.numel(), depth = c.depth();
  if (places == 0 || filters == 0) return;
  if (depth == 0) {
    WatchedFill(y, c.batch * c.out_channels * places, T(0));
    return;
  }
  Tensor scratch = ctx.Scratch(kDTypeOf<T>, {depth, places});
  T* columns = scratch.mutable_data<T>();
  const GemmDims dims = GemmDims::Dense(filters, places, depth);
  for (const int64_t n : Watched(c.batch))
    for (int64_t g = 0; g < c.groups; ++g) {
      ToColumns(c.windows, x + (n * c.in_channels + g * channels) * plane, channels, columns);
      ParallelGemm<T>(ctx, dims, T(1), w + g * filters * depth, columns, T(0),
                      y + (n * c.out_channels + g * filters) * places);
    }
}
template void Convolve(const KernelContext&, const Convolution&, const float*, const float*,
                       float*);
template void Convolve(const KernelContext&, const Convolution&, const double*, const double*,
                       double*);
template void Convolve(const KernelContext&, const Convolution&, const int32_t*, const int32_t*,
                       int32_t*);

}  // namespace heddle

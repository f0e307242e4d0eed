// sparse_conv3d: 3-D convolution over the entries of a sparse tensor with dense channels.
#include <array>
#include <map>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/slot_kinds.h"
#include "kernels/base/only_value.h"
#include "kernels/sparse/coo.h"

namespace heddle {
namespace {

// A convolution of [batch, depth, height, width, channels] with [kd, kh, kw, in, out].
struct Geometry {
  std::array<int64_t, 3> in, kernel, stride, pad, dilation, out;
  int64_t channels, filters;
  bool same_places;  // "submanifold": entries where x has some

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

Result<Geometry> GeometryOf(const KernelContext& ctx, const CooTensor& x) {
  const Tensor& kernel = ctx.In("kernel");
  if (x.shape.rank() != 5 || x.sparse_dim != 4 || kernel.rank() != 5 ||
      kernel.dim(3) != x.width() || kernel.dtype() != x.values.dtype())
    return InvalidArgument("kernel ", kernel.shape().ToString(), " does not fit x ",
                           x.shape.ToString());
  const Ints &strides = ctx.IntList("strides"), &pads = ctx.IntList("paddings"),
             &dilations = ctx.IntList("dilations");
  if (strides.size() != 3 || pads.size() != 3 || dilations.size() != 3)
    return InvalidArgument("strides, paddings and dilations must have 3 elements each");
  HEDDLE_RETURN_IF_ERROR(CheckOnlyValue(ctx, "groups"));
  Geometry g{};
  g.same_places = ctx.Bool("subm");
  g.channels = x.width();
  g.filters = kernel.dim(4);
  for (int d = 0; d < 3; ++d) {
    const auto k = static_cast<size_t>(d);
    g.in[k] = x.shape[d + 1];
    g.kernel[k] = kernel.dim(d);
    g.stride[k] = g.same_places ? 1 : strides[k];
    g.pad[k] = g.same_places ? g.kernel[k] / 2 : pads[k];
    g.dilation[k] = dilations[k];
    if (g.stride[k] < 1 || g.dilation[k] < 1 || g.kernel[k] < 1 || g.pad[k] < 0)
      return InvalidArgument("strides, dilations and kernel must be positive");
    const int64_t span = g.dilation[k] * (g.kernel[k] - 1) + 1;
    g.out[k] = g.same_places ? g.in[k] : (g.in[k] + 2 * g.pad[k] - span) / g.stride[k] + 1;
    if (g.out[k] < 1) return InvalidArgument("the kernel is larger than x ", x.shape.ToString());
  }
  return g;
}

// Output position that tap `tap` adds an entry at `c` to; -1: none.
int64_t Target(const Geometry& g, const std::vector<int64_t>& c, int64_t tap) {
  const std::array<int64_t, 3> at = {tap / (g.kernel[1] * g.kernel[2]),
                                     tap / g.kernel[2] % g.kernel[1], tap % g.kernel[2]};
  int64_t position = c[0];
  for (size_t d = 0; d < 3; ++d) {
    const int64_t reach = c[d + 1] + g.pad[d] - at[d] * g.dilation[d];
    if (reach < 0 || reach % g.stride[d] != 0 || reach / g.stride[d] >= g.out[d]) return -1;
    position = position * g.out[d] + reach / g.stride[d];
  }
  return position;
}

template <typename T>
void Convolve(const KernelContext& ctx, const CooTensor& x, const Geometry& g) {
  std::map<int64_t, int64_t> place;
  std::vector<std::vector<int64_t>> coordinates;
  for (const int64_t p : x.at) {
    LookForInterrupt();
    coordinates.push_back(x.Coordinates(p));
    if (g.same_places) place.emplace(p, 0);
    for (int64_t tap = 0; tap < g.taps() && !g.same_places; ++tap)
      if (const int64_t to = Target(g, coordinates.back(), tap); to >= 0) place.emplace(to, 0);
  }
  CooTensor out{
      4, x.index_dtype, Shape{x.shape[0], g.out[0], g.out[1], g.out[2], g.filters}, {}, {}};
  for (auto& [position, index] : place) {
    index = out.count();
    out.at.push_back(position);
  }
  out.values = out.NewValues(ctx, kDTypeOf<T>, out.count());
  T* values = out.values.template mutable_data<T>();
  WatchedFill(values, out.values.numel(), T(0));
  const T* kernel = ctx.In("kernel").data<T>();
  for (size_t i = 0; i < coordinates.size(); ++i)
    for (const int64_t tap : Watched(g.taps())) {
      const auto target = place.find(Target(g, coordinates[i], tap));
      if (target == place.end()) continue;
      const T* from = x.values.data<T>() + static_cast<int64_t>(i) * g.channels;
      const T* weights = kernel + tap * g.channels * g.filters;
      T* to = values + target->second * g.filters;
      for (int64_t c = 0; c < g.channels; ++c)
        for (int64_t f = 0; f < g.filters; ++f) to[f] += from[c] * weights[c * g.filters + f];
    }
  PutCoo(ctx, "out", std::move(out));
}

Status Conv3d(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const CooTensor* x, CooIn(ctx, "x"));
  HEDDLE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(ctx, *x));
  if (x->values.dtype() == DType::kF32)
    Convolve<float>(ctx, *x, g);
  else if (x->values.dtype() == DType::kF64)
    Convolve<double>(ctx, *x, g);
  else
    return Unimplemented("a convolution of ", Name(x->values.dtype()));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(sparse_conv3d) {
  op.Doc("3-D convolution of a sparse tensor, channels last; with subm, only where x has entries");
  op.Input("x", kAnyKind | kTakesOther)
      .Input("kernel")
      .Output("out", kTakesOther)
      .Output("rulebook", kOptional);
  op.Output("counter", kOptional).Attr("paddings", Ints{0, 0, 0}).Attr("dilations", Ints{1, 1, 1});
  op.Attr("strides", Ints{1, 1, 1}).Attr("groups", 1).Attr("subm", false).Attr("key", "");
  op.AnyKernel(Conv3d);
}

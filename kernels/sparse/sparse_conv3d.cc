// Layers over the entries of a sparse tensor whose last axis is dense (channels): batch_norm and
// 3-D convolution.
#include <array>
#include <cmath>
#include <map>

#include "kernels/base/check.h"
#include "kernels/sparse/coo.h"

namespace heddle {
namespace {

template <typename T>
Status Normalise(KernelContext& ctx, const CooTensor& x) {
  const int64_t n = x.count(), channels = x.width();
  const Tensor &scale = ctx.In("scale"), &bias = ctx.In("bias"), &mean_in = ctx.In("mean"),
               &var_in = ctx.In("variance");
  HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&scale, &bias, &mean_in, &var_in}));
  for (const Tensor* t : {&scale, &bias, &mean_in, &var_in})
    if (t->numel() != channels)
      return InvalidArgument("scale, bias, mean and variance must have ", channels, " elements");
  const bool fixed =
      (ctx.Bool("is_test") && !ctx.Bool("trainable_statistics")) || ctx.Bool("use_global_stats");
  const T momentum = static_cast<T>(ctx.Float("momentum"));
  const T epsilon = static_cast<T>(ctx.Float("epsilon"));
  CooTensor out = x.Frame();
  out.values = x.NewValues(ctx, kDTypeOf<T>, n);
  const Shape per_channel{channels};
  std::array<T*, 4> to{};
  constexpr Key kOuts[] = {"mean_out", "variance_out", "saved_mean", "saved_variance"};
  for (size_t k = 0; k < 4; ++k)
    if (ctx.HasOut(kOuts[k]))
      to[k] = ctx.Alloc(kOuts[k], kDTypeOf<T>, per_channel).template mutable_data<T>();
  const T* from = x.values.data<T>();
  for (int64_t c = 0; c < channels; ++c) {
    T mean = mean_in.data<T>()[c], variance = var_in.data<T>()[c];
    const T mean_before = mean, variance_before = variance;
    if (!fixed && n > 0) {
      T sum(0), square(0);
      for (int64_t i = 0; i < n; ++i) sum += from[i * channels + c];
      mean = sum / static_cast<T>(n);
      for (int64_t i = 0; i < n; ++i) {
        const T d = from[i * channels + c] - mean;
        square += d * d;
      }
      variance = square / static_cast<T>(n);
    }
    const T inverse = T(1) / std::sqrt(variance + epsilon);
    const std::array<T, 4> kept = {
        fixed ? mean_before : mean_before * momentum + mean * (1 - momentum),
        fixed ? variance_before : variance_before * momentum + variance * (1 - momentum), mean,
        inverse};
    for (size_t k = 0; k < 4; ++k)
      if (to[k] != nullptr) to[k][c] = kept[k];
    const T factor = inverse * scale.data<T>()[c], shift = bias.data<T>()[c] - mean * factor;
    for (int64_t i = 0; i < n; ++i)
      out.values.mutable_data<T>()[i * channels + c] = from[i * channels + c] * factor + shift;
  }
  PutCoo(ctx, "out", std::move(out));
  return Status::Ok();
}

Status BatchNorm(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const CooTensor* x, CooIn(ctx, "x"));
  if (x->shape.rank() != x->sparse_dim + 1)
    return InvalidArgument("x must have one dense axis, of channels");
  if (x->values.dtype() == DType::kF32) return Normalise<float>(ctx, *x);
  if (x->values.dtype() == DType::kF64) return Normalise<double>(ctx, *x);
  return Unimplemented("batch_norm of ", Name(x->values.dtype()));
}

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
  if (ctx.Int("groups") != 1) return Unimplemented("a sparse convolution in groups");
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

// Where in the output an entry at `c` goes through tap `tap`; -1 for nowhere.
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
  std::fill_n(values, out.values.numel(), T(0));
  const T* kernel = ctx.In("kernel").data<T>();
  for (size_t i = 0; i < coordinates.size(); ++i)
    for (int64_t tap = 0; tap < g.taps(); ++tap) {
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

HEDDLE_OP(sparse_batch_norm) {
  op.Doc("batch_norm over the entries of a sparse tensor, with channels last");
  op.Input("x", kAnyKind).Input("mean").Input("variance").Input("scale").Input("bias");
  op.Output("out").Output("mean_out", kOptional).Output("variance_out", kOptional);
  op.Output("saved_mean", kOptional).Output("saved_variance", kOptional);
  op.Output("reserve_space", kOptional).Attr("is_test", false).Attr("momentum", 0.9f);
  op.Attr("epsilon", 1e-5f).Attr("data_layout", "NDHWC").Attr("use_global_stats", false);
  op.Attr("trainable_statistics", false).AnyKernel(BatchNorm);
}
HEDDLE_OP(sparse_conv3d) {
  op.Doc("3-D convolution of a sparse tensor, channels last; with subm, only where x has entries");
  op.Input("x", kAnyKind).Input("kernel").Output("out").Output("rulebook", kOptional);
  op.Output("counter", kOptional).Attr("paddings", Ints{0, 0, 0}).Attr("dilations", Ints{1, 1, 1});
  op.Attr("strides", Ints{1, 1, 1}).Attr("groups", 1).Attr("subm", false).Attr("key", "");
  op.AnyKernel(Conv3d);
}

HEDDLE_EXAMPLES(sparse_batch_norm, R"(
example is_test true
in v float32 [3, 2] 1 -2 3 -0.5 0.25 2
in i int32 [4, 3] 0 0 0 0 0 1 0 1 1 0 2 1
in m float32 [2] 0.5 0.25
in q float32 [2] 1.5 2
in w float32 [2] 1 2
in b float32 [2] 0 1
var s sparse_coo
var r sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [1, 2, 2, 3, 2]
op sparse_batch_norm x=s mean=m variance=q scale=w bias=b -> out=r mean_out=m variance_out=q
  saved_mean=sm saved_variance=sv reserve_space=rs
attr is_test BOOLEAN true
attr momentum FLOAT 0.9
attr epsilon FLOAT 1e-05
attr data_layout STRING "NHWC"
attr use_global_stats BOOLEAN false
attr trainable_statistics BOOLEAN false
op sparse_to_dense x=r -> out=d
out d float32 [1, 2, 2, 3, 2] 0.40824693 -2.1819725 0*8 2.0412345 -0.06065744 0*8 -0.20412347
  3.4748673 0 0
out m float32 [2] 0.5 0.25
out q float32 [2] 1.5 2

example is_test false
in v float32 [3, 2] 1 -2 3 -0.5 0.25 2
in i int32 [4, 3] 0 0 0 0 0 1 0 1 1 0 2 1
in m float32 [2] 0.5 0.25
in q float32 [2] 1.5 2
in w float32 [2] 1 2
in b float32 [2] 0 1
var s sparse_coo
var r sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [1, 2, 2, 3, 2]
op sparse_batch_norm x=s mean=m variance=q scale=w bias=b -> out=r mean_out=m variance_out=q
  saved_mean=sm saved_variance=sv reserve_space=rs
attr is_test BOOLEAN false
attr momentum FLOAT 0.9
attr epsilon FLOAT 1e-05
attr data_layout STRING "NHWC"
attr use_global_stats BOOLEAN false
attr trainable_statistics BOOLEAN false
op sparse_to_dense x=r -> out=d
out d float32 [1, 2, 2, 3, 2] -0.35897774 -1.2223315 0*8 1.3641155 0.59593976 0*8 -1.0051377
  3.626392 0 0
out m float32 [2] 0.5916667 0.20833333
out q float32 [2] 1.4847221 2.0722222
)")

HEDDLE_EXAMPLES(sparse_conv3d, R"(
example 1x2x2
in v float32 [3, 2] 1 -2 3 -0.5 0.25 2
in i int32 [4, 3] 0 0 0 0 0 1 0 1 1 0 2 1
in k float32 [1, 2, 2, 2, 1] 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8
var s sparse_coo
var r sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [1, 2, 2, 3, 2]
op sparse_conv3d x=s kernel=k -> out=r rulebook=b counter=c
attr subm BOOLEAN false
attr paddings INTS [0, 0, 0]
attr dilations INTS [1, 1, 1]
attr strides INTS [1, 1, 1]
attr groups INT 1
attr key STRING ""
op sparse_to_dense x=r -> out=d
out d float32 [1, 2, 1, 2, 1] -0.3 1.6999999 1.775 1.325
)")

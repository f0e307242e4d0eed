// sparse_batch_norm: batch normalisation of the entries of a sparse tensor with dense channels.
#include <array>
#include <cmath>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
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
  for (const int64_t c : Watched(channels)) {
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

}  // namespace
}  // namespace heddle

HEDDLE_OP(sparse_batch_norm) {
  op.Doc("batch_norm over the entries of a sparse tensor, with channels last");
  op.Input("x", kAnyKind | kTakesOther)
      .Input("mean")
      .Input("variance")
      .Input("scale")
      .Input("bias");
  op.Output("out", kTakesOther).Output("mean_out", kOptional).Output("variance_out", kOptional);
  op.Output("saved_mean", kOptional).Output("saved_variance", kOptional);
  op.Output("reserve_space", kOptional).Attr("is_test", false).Attr("momentum", 0.9f);
  op.Attr("epsilon", 1e-5f).Attr("data_layout", "NDHWC").Attr("use_global_stats", false);
  op.Attr("trainable_statistics", false).AnyKernel(BatchNorm);
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

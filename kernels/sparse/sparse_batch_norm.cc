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

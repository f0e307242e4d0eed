// Batch normalisation in training, as TensorFlow returns its statistics, and the gradient.
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/convert.h"
#include "kernels/norm/norm.h"
#include "kernels/operands/narrow.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

bool ChannelsLast(const OpContext& ctx) { return ctx.Str("data_format").back() == 'C'; }

Result<int64_t> ChannelsOf(const OpContext& ctx, const Shape& x) {
  if (x.rank() != 4 && x.rank() != 5)
    return InvalidArgument("x has shape ", x.ToString(), ", expected rank 4 or 5");
  if (ctx.Str("data_format").empty()) return InvalidArgument("data_format is empty");
  return x.dim(ChannelsLast(ctx) ? -1 : 1);
}

Status CheckParam(const ShapeContext& ctx, Key key, int64_t channels, bool may_be_empty) {
  const Shape& s = ctx.InShape(key);
  if (channels < 0 || !s.is_static() || (s.rank() == 1 && s[0] == channels)) return Status::Ok();
  if (may_be_empty && s.numel() == 0) return Status::Ok();
  return InvalidArgument(key.name, " has shape ", s.ToString(), ", expected [", channels, "]");
}

Status FusedShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("x");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(ctx, x));
  const bool training = ctx.Bool("is_training");
  const bool blends = training && ctx.Float("exponential_avg_factor") != 1;
  HEDDLE_RETURN_IF_ERROR(CheckParam(ctx, "scale", channels, false));
  HEDDLE_RETURN_IF_ERROR(CheckParam(ctx, "offset", channels, false));
  HEDDLE_RETURN_IF_ERROR(CheckParam(ctx, "mean", channels, training && !blends));
  HEDDLE_RETURN_IF_ERROR(CheckParam(ctx, "variance", channels, training && !blends));
  const DType params = ctx.InDType("scale");
  ctx.SetOut("y", x, ctx.InDType("x"));
  for (const Key out :
       {Key("batch_mean"), Key("batch_variance"), Key("reserve_space_1"), Key("reserve_space_2")})
    if (ctx.HasOut(out)) ctx.SetOut(out, {channels}, params);
  return Status::Ok();
}

void Store(const KernelContext& ctx, Key out, const float* from, int64_t n) {
  if (Tensor* t = ctx.OutOpt(out))
    ConvertElements(ctx, from, DType::kF32, t->mutable_raw(), t->dtype(), n);
}

void Invert(const float* variance, int64_t n, float epsilon, float* inverse) {
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i)
      inverse[i] = 1 / std::sqrt(variance[i] + epsilon);
}

Status Fused(KernelContext& ctx) {
  const Tensor x = InFloat(ctx, ctx.In("x"));
  Tensor& out = ctx.Out("y");
  Tensor y = out.dtype() == DType::kF32 ? out : ctx.Scratch(DType::kF32, x.shape());
  const NormLayout layout = BatchLayout(x.shape(), ChannelsLast(ctx));
  const int64_t n = layout.channels, count = layout.count();
  const Tensor scale = InFloat(ctx, ctx.In("scale")), offset = InFloat(ctx, ctx.In("offset"));
  const auto epsilon = static_cast<float>(ctx.Float("epsilon"));
  Tensor scratch = ctx.Scratch(DType::kF32, {5 * n});
  float *inverse = scratch.mutable_data<float>(), *mean = inverse + n, *variance = mean + n;
  float *new_mean = variance + n, *new_variance = new_mean + n;
  const NormParams<float> params{scale.data<float>(), offset.data<float>()};
  if (!ctx.Bool("is_training")) {
    const Tensor m = InFloat(ctx, ctx.In("mean")), v = InFloat(ctx, ctx.In("variance"));
    Invert(v.data<float>(), n, epsilon, inverse);
    if (x.numel() > 0)
      NormForward(ctx, layout, x.data<float>(), {m.data<float>(), inverse, true}, params,
                  y.mutable_data<float>());
    for (const Key key : {Key("batch_mean"), Key("reserve_space_1")})
      Store(ctx, key, m.data<float>(), n);
    for (const Key key : {Key("batch_variance"), Key("reserve_space_2")})
      Store(ctx, key, v.data<float>(), n);
  } else {
    if (x.numel() > 0) {
      NormMoments(ctx, layout, x.data<float>(), mean, variance);
    } else {
      WatchedFill(mean, 2 * n, std::nanf(""));
    }
    Invert(variance, n, epsilon, inverse);
    if (x.numel() > 0)
      NormForward(ctx, layout, x.data<float>(), {mean, inverse, false}, params,
                  y.mutable_data<float>());
    // The returned variance is the unbiased one.
    const float unbiased =
        count > 1 ? static_cast<float>(count) / static_cast<float>(count - 1) : 1.0F;
    const auto factor = static_cast<float>(ctx.Float("exponential_avg_factor"));
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) {
        new_mean[i] = mean[i];
        new_variance[i] = variance[i] * unbiased;
      }
    if (factor != 1) {
      const Tensor m = InFloat(ctx, ctx.In("mean")), v = InFloat(ctx, ctx.In("variance"));
      if (m.numel() != n || v.numel() != n)
        return InvalidArgument("mean and variance have shapes ", m.shape().ToString(), " and ",
                               v.shape().ToString(), ", expected [", n, "]");
      for (const auto part : Stretches(n))
        for (int64_t i = part.begin; i < part.end; ++i) {
          new_mean[i] = (1 - factor) * m.data<float>()[i] + factor * new_mean[i];
          new_variance[i] = (1 - factor) * v.data<float>()[i] + factor * new_variance[i];
        }
    }
    Store(ctx, "batch_mean", new_mean, n);
    Store(ctx, "batch_variance", new_variance, n);
    Store(ctx, "reserve_space_1", mean, n);
    Store(ctx, "reserve_space_2", variance, n);
  }
  if (y.raw() != out.raw())
    ConvertElements(ctx, y.raw(), DType::kF32, out.mutable_raw(), out.dtype(), out.numel());
  return Status::Ok();
}

Status FusedGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("x");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(ctx, x));
  for (const Key key : {Key("scale"), Key("reserve_space_1"), Key("reserve_space_2")})
    HEDDLE_RETURN_IF_ERROR(CheckParam(ctx, key, channels, false));
  if (ctx.InShape("y_backprop").is_static() && x.is_static() && !(ctx.InShape("y_backprop") == x))
    return InvalidArgument("y_backprop has shape ", ctx.InShape("y_backprop").ToString(), ", x ",
                           x.ToString());
  ctx.SetOut("x_backprop", x, ctx.InDType("x"));
  for (const Key out : {Key("scale_backprop"), Key("offset_backprop")})
    if (ctx.HasOut(out)) ctx.SetOut(out, {channels}, ctx.InDType("scale"));
  return Status::Ok();
}

Status FusedGrad(KernelContext& ctx) {
  const Tensor x = InFloat(ctx, ctx.In("x")), dy = InFloat(ctx, ctx.In("y_backprop"));
  Tensor& out = ctx.Out("x_backprop");
  Tensor dx = out.dtype() == DType::kF32 ? out : ctx.Scratch(DType::kF32, x.shape());
  const NormLayout layout = BatchLayout(x.shape(), ChannelsLast(ctx));
  const int64_t n = layout.channels;
  const Tensor scale = InFloat(ctx, ctx.In("scale"));
  const Tensor mean = InFloat(ctx, ctx.In("reserve_space_1"));
  const Tensor variance = InFloat(ctx, ctx.In("reserve_space_2"));
  Tensor scratch = ctx.Scratch(DType::kF32, {3 * n});
  float *inverse = scratch.mutable_data<float>(), *sum_dy = inverse + n, *sum_dy_x = sum_dy + n;
  Invert(variance.data<float>(), n, static_cast<float>(ctx.Float("epsilon")), inverse);
  if (x.numel() > 0) {
    NormBackward(ctx, layout, x.data<float>(), dy.data<float>(),
                 {mean.data<float>(), inverse, !ctx.Bool("is_training")}, scale.data<float>(),
                 dx.mutable_data<float>(), sum_dy, sum_dy_x);
  } else {
    WatchedFill(sum_dy, 2 * n, 0.0F);
  }
  Store(ctx, "scale_backprop", sum_dy_x, n);
  Store(ctx, "offset_backprop", sum_dy, n);
  if (dx.raw() != out.raw())
    ConvertElements(ctx, dx.raw(), DType::kF32, out.mutable_raw(), out.dtype(), out.numel());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_fused_batch_norm_v3) {
  op.Doc("x normalised over all but its channels; training returns the batch's statistics");
  op.Input("x").Input("scale").Input("offset").Input("mean").Input("variance");
  op.Output("y").Output("batch_mean", kOptional).Output("batch_variance", kOptional);
  op.Output("reserve_space_1", kOptional).Output("reserve_space_2", kOptional);
  op.Attr("epsilon", 1e-4).Attr("exponential_avg_factor", 1.0).Attr("data_format", "NHWC");
  op.Attr("is_training", true).InferShape(FusedShape);
  op.Kernel({DType::kF32, DType::kF16, DType::kBF16}, Fused);
}
HEDDLE_OP(tf_fused_batch_norm_grad_v3) {
  op.Doc("gradient of tf_fused_batch_norm_v3 from its reserve outputs, mean and biased variance");
  op.Input("y_backprop").Input("x").Input("scale").Input("reserve_space_1");
  op.Input("reserve_space_2").Output("x_backprop").Output("scale_backprop", kOptional);
  op.Output("offset_backprop", kOptional).Attr("epsilon", 1e-4).Attr("data_format", "NHWC");
  op.Attr("is_training", true).InferShape(FusedGradShape).KernelKey("x");
  op.Kernel({DType::kF32, DType::kF16, DType::kBF16}, FusedGrad);
}

// Local response normalisation over channels, and its gradient.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/norm/lrn.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

struct LrnAttrs {
  int64_t radius;
  float bias, alpha, beta;
};
LrnAttrs AttrsOf(const OpContext& ctx) {
  return {std::clamp<int64_t>(ctx.Int("depth_radius"), -1, int64_t{1} << 40),
          static_cast<float>(ctx.Float("bias")), static_cast<float>(ctx.Float("alpha")),
          static_cast<float>(ctx.Float("beta"))};
}

Status CheckInput(const Shape& x) {
  if (x.rank() == 4) return Status::Ok();
  return InvalidArgument("input has shape ", x.ToString(), ", expected rank 4");
}

// bias + alpha times the sum of squares around channel `c`.
float NormAt(const LrnAttrs& a, const float* pixel, int64_t c, int64_t channels) {
  float sum = 0;
  for (int64_t k = std::max<int64_t>(0, c - a.radius); k <= std::min(channels - 1, c + a.radius);
       ++k)
    sum += pixel[k] * pixel[k];
  return a.bias + a.alpha * sum;
}

Status Lrn(KernelContext& ctx) {
  const Tensor& in = ctx.In("input");
  HEDDLE_RETURN_IF_ERROR(CheckInput(in.shape()));
  const LrnAttrs a = AttrsOf(ctx);
  const int64_t channels = in.dim(3), pixels = channels == 0 ? 0 : in.numel() / channels;
  const float* from = in.data<float>();
  float* to = ctx.Out("output").mutable_data<float>();
  const LrnNorm<float> norm{a.bias, a.alpha, 2 * a.radius + 1, a.radius};
  WithNegativePower(a.beta, [&](auto power) {
    ctx.ParallelFor(pixels, 1 + 4096 / (1 + channels), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const float* x = from + p * channels;
        norm.ForPixel(x, channels, [&](int64_t c, int64_t count, const float* sum) {
          float* y = to + p * channels + c;
          for (int64_t i = 0; i < count; ++i) y[i] = x[c + i] * power(sum[i]);
        });
      }
    });
  });
  return Status::Ok();
}

Status LrnGrad(KernelContext& ctx) {
  const Tensor &g = ctx.In("input_grads"), &x = ctx.In("input_image"), &y = ctx.In("output_image");
  HEDDLE_RETURN_IF_ERROR(CheckInput(x.shape()));
  if (!(g.shape() == x.shape()) || !(y.shape() == x.shape()))
    return InvalidArgument("input_grads, input_image and output_image have shapes ",
                           g.shape().ToString(), ", ", x.shape().ToString(), " and ",
                           y.shape().ToString(), ", expected one");
  const LrnAttrs a = AttrsOf(ctx);
  const int64_t channels = x.dim(3), pixels = channels == 0 ? 0 : x.numel() / channels;
  Tensor& out = ctx.Out("output");
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  for (const int64_t p : Watched(pixels)) {
    const float *in = x.data<float>() + p * channels, *made = y.data<float>() + p * channels;
    const float* grad = g.data<float>() + p * channels;
    float* to = out.mutable_data<float>() + p * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float norm = NormAt(a, in, c, channels);
      for (int64_t k = std::max<int64_t>(0, c - a.radius);
           k <= std::min(channels - 1, c + a.radius); ++k) {
        float d = -2 * a.alpha * a.beta * in[k] * made[c] / norm;
        if (k == c) d += std::pow(norm, -a.beta);
        to[k] += d * grad[c];
      }
    }
  }
  return Status::Ok();
}

OpDef& Declare(OpDef& op) {
  op.Attr("depth_radius", 5).Attr("bias", 1.0).Attr("alpha", 1.0).Attr("beta", 0.5);
  op.InferShape(SameShape);
  return op;
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_lrn) {
  op.Doc("x / (bias + alpha sum)^beta, the sum of squares over 2 depth_radius + 1 channels");
  op.Input("input").Output("output");
  Declare(op).Kernel(DType::kF32, Lrn).Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_lrn_grad) {
  op.Doc("gradient of tf_lrn").Input("input_grads").Input("input_image").Input("output_image");
  op.Output("output");
  Declare(op).Kernel(DType::kF32, LrnGrad).Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

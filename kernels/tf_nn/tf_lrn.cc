// Local response normalisation over channels, and its gradient.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/norm/lrn.h"
#include "kernels/onnx/operands.h"

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

HEDDLE_EXAMPLES(tf_lrn, R"(
example recorded case 1
attr depth_radius INT 1
attr bias FLOAT 2.0
attr alpha FLOAT 0.009999999776482582
attr beta FLOAT 0.75
in input float32 [2, 3, 3, 5] 1.2354956 -2.044122 -0.12901115 -3.576614 -1.3217255 0.65231156
  1.9137045 1.1224265 2.7486331 -0.97793615 -2.9238024 1.0042533 1.1988239 0.29336375 1.1634775
  0.10003167 -0.23324397 -0.62979275 -0.3065676 -0.47746688 -0.84262747 -1.481157 -1.3879849
  -1.397835 -0.28302827 -0.9800238 -1.549032 0.8107692 0.862299 0.6047391 -3.054972 0.33240396
  1.6937075 0.6999916 -0.5994921 -1.0491889 1.240236 -0.20575474 1.0135683 0.16688895 3.03139
  -1.2570395 1.2482097 1.2731564 0.52374166 0.5107312 -2.4569273 -0.84990585 0.0932665 -0.38019088
  0.5662611 1.6717044 1.3752788 -2.5770702 1.8612593 -1.5177523 1.5434918 -2.5368502 1.320636
  0.62260497 1.0938218 2.3730495 -0.18761852 -0.7736074 -0.46968177 -1.1156664 -1.2178196 1.4913014
  -0.8629325 1.1875827 -0.15468629 -2.0767624 -0.04609206 0.5783149 0.1560034 -0.3133136 -1.4619957
  -0.6918095 1.2719158 -1.7849184 -0.66379476 -0.5664123 -1.0270516 3.6824112 1.2641114 -1.2868552
  2.8281777 -1.4727817 -0.3296755 0.20243706
out output float32 [2, 3, 3, 5] 0.71929616 -1.1900002 -0.07216085 -2.0175157 -0.7456094 0.38202548
  1.1155977 0.6377843 1.5769118 -0.56358993 -1.6786925 0.573641 0.70613146 0.17257662 0.68809617
  0.05946482 -0.13844839 -0.37371343 -0.1817965 -0.28356123 -0.49564174 -0.8650781 -0.80698776
  -0.8190233 -0.1670173 -0.5754897 -0.90742373 0.47532806 0.50935537 0.3580915 -1.7547176 0.18898846
  0.9941788 0.41050717 -0.35532892 -0.61774814 0.73011965 -0.12115955 0.6002028 0.09884192 1.7329502
  -0.7146514 0.72921425 0.7473659 0.30922356 0.29670313 -1.4235855 -0.49290028 0.055275198
  -0.22593302 0.33282033 0.9757387 0.7846466 -1.4668275 1.0665439 -0.88692087 0.8812617 -1.4513085
  0.7609365 0.36727107 0.6342199 1.3757663 -0.10900753 -0.45852157 -0.27841973 -0.6566734
  -0.71095836 0.87221265 -0.5048352 0.70048773 -0.09050899 -1.2151316 -0.02693817 0.34340343
  0.092635565 -0.18475068 -0.8605636 -0.40494016 0.74164265 -1.0425935 -0.39357147 -0.334515
  -0.5785764 2.0652423 0.711569 -0.73858654 1.6107415 -0.8434232 -0.19433881 0.12030228

example recorded case 2
attr depth_radius INT 2
attr bias FLOAT 1.0
attr alpha FLOAT 0.009999999776482582
attr beta FLOAT 0.5
in input float32 [2, 3, 3, 5] 0.6457416 -0.4393296 -0.46751076 -1.3846966 0.14640301 -1.010254
  0.3766519 -0.98618656 -1.862301 -0.61946774 0.29582766 0.24004088 -0.29312763 0.11944688
  -0.9680716 -1.0494611 0.61869025 -0.26480696 -1.6015238 2.7907271 0.998182 -0.45813698 -0.23817366
  -1.9619427 2.682877 -2.006112 0.6426895 -0.2949774 0.5410907 -0.6527308 -0.27424848 0.79903585
  -0.8846625 0.15504117 -0.5348492 0.5290523 1.0781639 1.255857 -0.17328492 0.94072926 -0.17955466
  2.652235 2.1368308 2.1113067 -1.3752568 3.3767383 -1.1651734 -1.3953197 0.41000426 1.2072994
  0.39797074 -0.73723274 0.3997136 1.2670484 -2.0817168 -1.481525 2.3002067 -2.1093245 1.7902687
  2.9602249 -1.5250516 -1.8513824 -0.42904726 1.0950351 2.1796134 0.9834626 0.9255333 0.8722905
  -1.7050506 1.9856843 0.54764885 2.0198987 0.40879717 -0.34052777 1.2104559 0.28548485 1.835671
  -1.2906486 2.2179978 -1.3534629 -0.24183442 -1.2188148 1.394811 -1.5376228 1.8222498 0.36280596
  0.58047277 0.5477757 -0.84868515 1.7447265
out output float32 [2, 3, 3, 5] 0.6430829 -0.4334192 -0.46117312 -1.368705 0.14484888 -0.999639
  0.36652333 -0.95792806 -1.8177111 -0.60504454 0.29548645 0.23974699 -0.29140976 0.11879824
  -0.9630891 -1.0413992 0.6063284 -0.25032267 -1.5214297 2.6557505 0.99193764 -0.4468572 -0.22474211
  -1.859568 2.5452847 -1.9622126 0.62774706 -0.2875354 0.5378229 -0.6501166 -0.27221942 0.7930302
  -0.87677884 0.15371633 -0.5319507 0.52124137 1.062091 1.231857 -0.1702027 0.9292216 -0.16994214
  2.461581 1.9672656 1.9440327 -1.3058361 3.152845 -1.0871208 -1.2936686 0.4002562 1.1862946
  0.39626715 -0.7283036 0.38677824 1.2269548 -2.021001 -1.4003152 2.1436477 -1.8949698 1.622775
  2.7435699 -1.481698 -1.7886577 -0.4056157 1.0461621 2.1156917 0.970994 0.9011197 0.83384115
  -1.6371452 1.9141756 0.5356071 1.9743904 0.39681903 -0.33101806 1.2000116 0.27844965 1.7499534
  -1.2202657 2.0978081 -1.2998624 -0.23772232 -1.184635 1.3349193 -1.4719933 1.756469 0.36141962
  0.5761991 0.5357672 -0.8306031 1.7103157
)")

HEDDLE_EXAMPLES(tf_lrn_grad, R"(
example radius 1
attr depth_radius INT 1
attr bias FLOAT 2
attr alpha FLOAT 0.5
attr beta FLOAT 0.75
in input_grads float32 [1, 1, 2, 4] -0.48 0.39 0.91 -0.11 0.87 0.98 0.91 -0.27
in input_image float32 [1, 1, 2, 4] 1 -0.5 0.25 2 0 1 -1 0.5
in output_image float32 [1, 1, 2, 4] 0.5325 -0.2636 0.1113 0.9051 0 0.5081 -0.4833 0.2773
out output float32 [1, 1, 2, 4] -0.13069685 0.14555079 0.31993717 -0.038171858 0.43758684 0.41098577
  0.384712 -0.06745103
)")

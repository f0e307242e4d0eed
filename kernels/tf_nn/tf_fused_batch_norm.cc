// Batch normalisation in training, as TensorFlow returns its statistics, and the gradient.
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/elementwise/convert.h"
#include "kernels/norm/norm.h"
#include "kernels/onnx/operands.h"
#include "kernels/tf/narrow.h"

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

HEDDLE_EXAMPLES(tf_fused_batch_norm_v3, R"(
example recorded case 1
attr epsilon FLOAT 0.0010000000474974513
attr exponential_avg_factor FLOAT 1.0
attr data_format STRING "NCHW"
attr is_training BOOLEAN false
in x float32 [1, 2, 6, 5] 1.8856887 0.65083176 -1.4257945 2.253271 0.32863066 -3.3698184 -1.5140175
  0.66571856 -1.0183283 2.3838465 0.7268737 -1.7384639 0.7375556 0.07684233 -2.4810984 0.49922764
  -0.29382834 -3.3838825 1.0547882 -0.44649756 1.1868631 0.814678 -0.36727178 -2.6378767 1.8547008
  -0.92904425 -0.13227504 2.5895028 0.60409766 0.7016971 0.7214285 1.13136 -2.3911693 -2.2416005
  0.5707492 0.7053647 1.0064617 1.0228484 -0.29608747 2.7731056 0.9653934 -2.8471859 0.37121418
  0.8938825 -2.4599917 1.5266343 -0.4920158 -2.265318 -0.24636742 0.7079646 -0.55621713 -1.1601433
  1.4261949 1.0247796 2.0524633 -1.2412915 -2.4646008 -0.7237403 0.918873 0.8648104
in scale float32 [2] -0.6651594 -2.0081725
in offset float32 [2] 0.97984105 -2.7458215
in mean float32 [2] -0.2610128 -2.3028576
in variance float32 [2] 1.5775408 0.39768884
out y float32 [1, 2, 6, 5] -0.15665895 0.4970951 1.5964961 -0.35126334 0.6676738 2.6256955 1.6432029
  0.4892138 1.3807766 -0.42039222 0.45683724 1.7620287 0.45118207 0.80097485 2.155192 0.57735693
  0.99721414 2.633141 0.2832337 1.0780399 0.21331108 0.41035217 1.0360963 2.238193 -0.14025348
  1.3335083 0.9116851 -0.5292701 0.52183694 0.47016615 -12.364311 -13.668064 -2.4649537 -2.9406447
  -11.885088 -12.313221 -13.270836 -13.32295 -9.128186 -18.889496 -13.140221 -1.0146312 -11.250483
  -12.9127865 -2.2460697 -14.925201 -8.505053 -2.8652134 -9.286316 -12.321489 -8.300865 -6.380129
  -14.605761 -13.329094 -16.597555 -6.1220436 -2.231411 -7.768072 -12.992266 -12.820324
out batch_mean float32 [2] -0.2610128 -2.3028576
out batch_variance float32 [2] 1.5775408 0.39768884

example recorded case 2
attr epsilon FLOAT 0.0010000000474974513
attr exponential_avg_factor FLOAT 1.0
attr data_format STRING "NHWC"
attr is_training BOOLEAN true
in x float32 [1, 6, 4, 3] 0.024304513 0.3749674 -4.032052 -0.055508662 0.67386293 -1.2029531
  -0.082889 0.013109047 1.2210443 -0.24393502 0.36685756 -0.20313054 0.8046099 0.7844755 0.2893788
  -0.19983275 1.1860474 1.7884957 -1.386069 -0.81028706 -1.0642385 0.48006988 -0.13874716
  -0.84839547 -1.8871711 1.0441056 0.38140866 -0.39136258 -2.0115776 2.6194656 -1.348869 -2.8717284
  -0.5033967 -3.1627226 2.3776581 1.1137937 0.15036142 -0.48412493 -0.18921472 -1.6071445
  -0.26035923 -2.198421 0.24789372 -2.2625618 -0.8589417 -0.81976485 0.1996233 3.2623005 -1.8874885
  -0.8193177 0.38499057 1.0844102 -3.0434847 3.248277 -1.147068 3.2698638 -0.73126286 -0.7235731
  3.5024633 -0.1529295 -0.26628426 0.13449228 0.69767153 -0.9556599 1.1587076 0.79412407 0.774927
  -1.3479241 -0.4649921 -3.5445828 1.9296021 2.5671756
in scale float32 [3] 0.02869633 -0.23804006 -0.35420626
in offset float32 [3] 0.30206314 0.21909174 0.59737897
in mean float32 [0]
in variance float32 [0]
out y float32 [1, 6, 4, 3] 0.31947154 0.1833762 1.5053217 0.31747794 0.14091238 0.9049773 0.31679404
  0.23478508 0.39059678 0.3127714 0.18452835 0.69281155 0.33896214 0.12519775 0.5882994 0.313873
  0.06814678 0.27018166 0.28424296 0.35176423 0.87554157 0.33085573 0.25635916 0.829739 0.27172634
  0.08831233 0.56877035 0.30908892 0.52243054 0.09384698 0.28517216 0.6446314 0.75652903 0.23986539
  -0.101144254 0.4133557 0.3226202 0.30542666 0.68985856 0.27872092 0.2736365 1.116219 0.32505637
  0.5580876 0.8319769 0.2983882 0.20828718 -0.04256475 0.2717184 0.3530472 0.5680102 0.34595105
  0.66903263 -0.03958893 0.29021278 -0.22789913 0.804883 0.3007909 -0.26094434 0.6821587 0.31221315
  0.21754028 0.50165826 0.2949938 0.07203092 0.4811907 0.33822072 0.42814583 0.74837947 0.23032722
  -0.037489384 0.1049431
out batch_mean float32 [3] -0.67263955 0.1235718 0.24659157
out batch_variance float32 [3] 1.3762115 2.9283946 2.9062657
out reserve_space_1 float32 [3] -0.67263955 0.1235718 0.24659157
out reserve_space_2 float32 [3] 1.3188694 2.8063781 2.7851713
)")

HEDDLE_EXAMPLES(tf_fused_batch_norm_grad_v3, R"(
example recorded case 1
attr epsilon FLOAT 0.0010000000474974513
attr data_format STRING "NHWC"
attr is_training BOOLEAN false
in y_backprop float32 [2, 3, 2, 1] -0.42779973 2.3234684 -0.30789453 -1.1140426 -0.67640615
  2.1170797 0.316182 -1.4513237 0.66581285 -0.7075845 1.1404163 0.84060675
in x float32 [2, 3, 2, 1] -1.17031 1.6447053 0.34557202 0.24606892 -0.56029505 -0.08606205 1.4806154
  -1.98301 -1.7402748 1.6083902 -0.14824483 -0.10925837
in scale float32 [1] 2.1379678
in reserve_space_1 float32 [1] 0.33878425
in reserve_space_2 float32 [1] 1.8983521
out x_backprop float32 [2, 3, 2, 1] -0.66364974 3.6044183 -0.47763965 -1.7282248 -1.0493152
  3.2842455 0.49049607 -2.2514522 1.0328817 -1.0976825 1.7691385 1.3040411
out scale_backprop float32 [1] 2.9066122
out offset_backprop float32 [1] 2.718515

example recorded case 2
attr epsilon FLOAT 0.0010000000474974513
attr is_training BOOLEAN false
in y_backprop float32 [2, 3, 2, 3] -1.3125814 -1.0380193 1.234497 -2.0571525 -0.31229752 -0.13898262
  1.2778136 2.58173 3.4909837 -0.5616926 0.06545581 -0.2211858 -1.3702369 -0.6246696 -0.72893864
  -0.6625401 0.8804521 0.07107428 -0.9715173 1.5126232 0.25775424 1.8965323 0.7291852 0.7913049
  -0.558947 -1.5291368 1.5895443 0.7357368 -0.29487234 -0.15255083 -3.5418909 -0.679779 0.67258906
  1.3921989 1.8493586 1.5338596
in x float32 [2, 3, 2, 3] 2.03787 1.9336444 -0.42794824 0.1908471 1.2273966 0.88654226 1.3113196
  0.419406 2.6153843 -2.0786393 -0.44194874 0.7751737 0.07702166 1.1941797 -2.7878234 -2.4722912
  -0.851746 -1.1533659 -0.5839342 -0.5704671 -0.4857748 0.40727937 -0.19628648 0.13395657 0.50759417
  0.62114656 -1.5352029 -0.21821979 -0.8380501 0.6667751 -1.755117 -3.5906148 0.4240551 -0.01728644
  3.19985 1.0830065
in scale float32 [3] 0.6673179 2.4108646 2.3478284
in reserve_space_1 float32 [3] -0.2833881 -1.0182378 0.8993327
in reserve_space_2 float32 [3] 2.8583639 2.0114527 0.59677845
out x_backprop float32 [2, 3, 2, 3] -0.51799357 -1.7640685 3.748748 -0.8118291 -0.530736 -0.42204303
  0.5042729 4.387537 10.600932 -0.22166485 0.11123929 -0.6716662 -0.54074657 -1.0615988 -2.2135391
  -0.26146302 1.4962898 0.21582845 -0.38339695 2.570637 0.7827121 0.74844235 1.2392185 2.4029243
  -0.22058134 -2.5987012 4.826906 0.29034916 -0.50112265 -0.46324506 -1.3977622 -1.1552547 2.0424247
  0.5494136 3.142904 4.6578107
out scale_backprop float32 [3] 4.004193 4.9446764 2.7010083
out offset_backprop float32 [3] -5.7342772 3.1400304 8.399949
)")

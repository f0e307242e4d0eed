// Numbers rounded to the nearest of a quantised range, which is moved so that 0 is one of them; a
// range on one side of 0 gets it as its end.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/onnx/operands.h"

namespace heddle {
namespace {

struct Range {
  float low, high, step;
};
Range NudgedRange(float low, float high, int64_t bits, bool narrow) {
  const auto least = narrow ? 1.0F : 0.0F;
  const auto most = static_cast<float>((int64_t{1} << bits) - 1);
  const float step = (high - low) / (most - least);
  const float zero = least - low / step;
  const float at = zero < least ? least : zero > most ? most : std::round(zero);
  return {(least - at) * step, (most - at) * step, step};
}

Status CheckAttrs(const OpContext& ctx) {
  const int64_t bits = ctx.Int("num_bits");
  if (bits >= 2 && bits <= 16) return Status::Ok();
  return InvalidArgument("num_bits is ", bits, ", expected 2 to 16");
}

// `n` elements, `step` apart.
void Quantize(const OpContext& ctx, float low, float high, const float* from, float* to, int64_t n,
              int64_t step) {
  if (low == 0 && high == 0) {
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) to[i * step] = 0;
    return;
  }
  const Range r = NudgedRange(low, high, ctx.Int("num_bits"), ctx.Bool("narrow_range"));
  const float inverse = 1 / r.step, zero = std::floor(-r.low * inverse + 0.5F);
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) {
      const float x = from[i * step];
      const float clamped = std::max(std::min(x, r.high), r.low) - r.low;
      to[i * step] = std::floor(clamped * inverse - zero + 0.5F) * r.step;
    }
}

Status Args(KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckAttrs(ctx));
  const auto low = static_cast<float>(ctx.Float("min")),
             high = static_cast<float>(ctx.Float("max"));
  if (!(low < high))
    return InvalidArgument("min and max are ", low, " and ", high, ", expected min below max");
  const Tensor& x = ctx.In("inputs");
  Quantize(ctx, low, high, x.data<float>(), ctx.Out("outputs").mutable_data<float>(), x.numel(), 1);
  return Status::Ok();
}

template <bool kChannels>
Status Vars(KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckAttrs(ctx));
  const Tensor &x = ctx.In("inputs"), &lows = ctx.In("min"), &highs = ctx.In("max");
  const int64_t channels = kChannels ? (x.rank() == 0 ? 1 : x.dim(-1)) : 1;
  if (lows.numel() != channels || highs.numel() != channels || lows.dtype() != DType::kF32 ||
      highs.dtype() != DType::kF32)
    return InvalidArgument("min and max have shapes ", lows.shape().ToString(), " and ",
                           highs.shape().ToString(), ", expected ", channels, " float32 of each");
  float* to = ctx.Out("outputs").mutable_data<float>();
  for (const int64_t c : Watched(channels)) {
    const float low = lows.data<float>()[c], high = highs.data<float>()[c];
    Quantize(ctx, low, high, x.data<float>() + c, to + c, x.numel() / channels, channels);
  }
  return Status::Ok();
}

OpDef& DefineFakeQuant(OpDef& op, const char* doc) {
  op.Doc(doc).Input("inputs").Output("outputs").Inplace("inputs", "outputs");
  op.Attr("num_bits", 8).Attr("narrow_range", false).KernelKey("inputs");
  return op.InferShape(SameShape);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_fake_quant_with_min_max_args) {
  DefineFakeQuant(op, "inputs rounded to a quantised range from attributes").Attr("min", -6.0);
  op.Attr("max", 6.0).Kernel(DType::kF32, Args);
}
HEDDLE_OP(tf_fake_quant_with_min_max_vars) {
  op.Input("inputs").Input("min").Input("max").Output("outputs").Inplace("inputs", "outputs");
  op.Doc("inputs rounded to a quantised range").Attr("num_bits", 8).Attr("narrow_range", false);
  op.KernelKey("inputs").InferShape(SameShape).Kernel(DType::kF32, Vars<false>);
}
HEDDLE_OP(tf_fake_quant_with_min_max_vars_per_channel) {
  op.Input("inputs").Input("min").Input("max").Output("outputs").Inplace("inputs", "outputs");
  op.Doc("inputs rounded to a quantised range of each channel, the last dimension");
  op.Attr("num_bits", 8).Attr("narrow_range", false);
  op.KernelKey("inputs").InferShape(SameShape).Kernel(DType::kF32, Vars<true>);
}

HEDDLE_EXAMPLES(tf_fake_quant_with_min_max_args, R"(
example a range above zero
attr min FLOAT 1.0
attr max FLOAT 3.0
attr num_bits INT 4
attr narrow_range BOOLEAN false
in inputs float32 [7] -1 0 0.5 1.3 2.2 2.9 7
out outputs float32 [7] 0 0 0.53333336 1.3333334 2 2 2

example recorded case 1
attr min FLOAT -6.0
attr max FLOAT 12.0
attr num_bits INT 8
attr narrow_range BOOLEAN false
in inputs float32 [0]
out outputs float32 [0]

example recorded case 2
attr min FLOAT -6.0
attr max FLOAT 6.0
attr num_bits INT 8
attr narrow_range BOOLEAN false
in inputs float32 [2, 2, 5, 3] 9.381878 -2.9193895 -23.651083 -21.826092 -2.4578679 9.896597
  19.95288 40.3016 2.8782277 2.3734562 -0.7254609 -0.31416652 0.35234877 -2.8054743 -13.347847
  18.249454 21.69188 11.691799 8.710866 20.67879 -16.426456 28.722803 -16.878382 -17.671497
  -27.356577 14.602206 -42.316555 1.5298916 -26.47696 -14.970464 5.527605 3.0323575 -9.735517
  -18.527294 27.005177 -7.632283 -4.554135 17.333649 9.718659 -20.522762 -8.618141 23.500126
  -32.515656 34.010376 1.8485913 16.13697 0.79863685 -14.751665 17.644453 -2.819709 11.125366
  -0.3942317 -3.0709078 1.5509088 -8.237025 0.8646904 -7.7548275 7.8473916 -1.2014676 16.286583
out outputs float32 [2, 2, 5, 3] 5.9764705 -2.9176471 -6.0235295 -6.0235295 -2.447059 5.9764705
  5.9764705 5.9764705 2.8705883 2.3529413 -0.7058824 -0.32941177 0.32941177 -2.8235295 -6.0235295
  5.9764705*5 -6.0235295 5.9764705 -6.0235295 -6.0235295 -6.0235295 5.9764705 -6.0235295 1.5529412
  -6.0235295 -6.0235295 5.5058823 3.0117648 -6.0235295 -6.0235295 5.9764705 -6.0235295 -4.564706
  5.9764705 5.9764705 -6.0235295 -6.0235295 5.9764705 -6.0235295 5.9764705 1.8352941 5.9764705 0.8
  -6.0235295 5.9764705 -2.8235295 5.9764705 -0.3764706 -3.0588236 1.5529412 -6.0235295 0.84705883
  -6.0235295 5.9764705 -1.2235295 5.9764705
)")

HEDDLE_EXAMPLES(tf_fake_quant_with_min_max_vars, R"(
example a range below zero
attr num_bits INT 4
attr narrow_range BOOLEAN false
in inputs float32 [7] -1 0 0.5 1.3 2.2 2.9 7
in min float32 [] -3
in max float32 [] -1
out outputs float32 [7] -1.0666667 0*6

example recorded case 1
attr num_bits INT 6
attr narrow_range BOOLEAN false
in inputs float32 [1, 2, 2] -14.64607 12.724494 -0.19036499 28.394985
in min float32 [] -5.3
in max float32 [] 7.1
out outputs float32 [1, 2, 2] -5.3142853 7.085714 -0.19682539 7.085714

example recorded case 2
in inputs float32 [2, 4] -11.519908 -21.47472 25.85969 12.555084 14.319738 -27.525118 39.066376
  3.8158484
in min float32 [] -5.3
in max float32 [] 7.1
out outputs float32 [2, 4] -5.300392 -5.300392 7.099608 7.099608 7.099608 -5.300392 7.099608
  3.792941

example recorded case 3
attr num_bits INT 8
attr narrow_range BOOLEAN false
in inputs float32 [5, 2, 5] 9.05004 -3.9001691 -14.913738 3.5815692 2.1280699 -30.187637 75.298195
  -4.7039423 -10.1416235 -9.904683 16.860188 -39.649216 -16.857897 41.821053 12.824647 -2.5390267
  -7.1647935 12.395054 -23.721949 -18.811422 27.58158 7.7239575 0.63176525 -17.669209 -0.8904197
  1.9932994 14.087927 -15.796996 16.070349 4.0771747 -38.684856 -17.542536 6.810386 -14.505515
  -1.8235711 -0.36539018 30.189568 24.52746 0.77202135 -16.160736 14.556472 18.057552 14.778316
  -15.837446 -21.22536 18.05117 14.382406 31.464216 8.72973 7.590893
in min float32 [] -5.3
in max float32 [] 7.1
out outputs float32 [5, 2, 5] 7.099608 -3.890196 -5.300392 3.5984313 2.139608 -5.300392 7.099608
  -4.7168627 -5.300392 -5.300392 7.099608 -5.300392 -5.300392 7.099608 7.099608 -2.5286274 -5.300392
  7.099608 -5.300392 -5.300392 7.099608 7.099608 0.63215685 -5.300392 -0.8752941 1.9937255 7.099608
  -5.300392 7.099608 4.084706 -5.300392 -5.300392 6.807843 -5.300392 -1.8478432 -0.3890196 7.099608
  7.099608 0.7780392 -5.300392 7.099608 7.099608 7.099608 -5.300392 -5.300392 7.099608*5
)")

HEDDLE_EXAMPLES(tf_fake_quant_with_min_max_vars_per_channel, R"(
example ranges beside zero
attr num_bits INT 3
attr narrow_range BOOLEAN false
in inputs float32 [3, 2] -1 0 0.5 1.3 2.2 -2.9
in min float32 [2] 0.5 -4
in max float32 [2] 2 -1
out outputs float32 [3, 2] 0 0 0.42857143 0 1.5 -3

example recorded case 1
attr num_bits INT 8
attr narrow_range BOOLEAN true
in inputs float32 [2, 3, 4] 19.469925 33.299866 25.30199 5.9293942 -23.475487 0.23698261 -43.629223
  -1.5978203 29.070175 10.770698 -21.948355 11.6992 -23.210648 -2.2304485 -7.5691023 27.96769
  10.855004 7.006392 1.7625988 21.563938 -13.842274 -26.751795 -49.05909 12.936171
in min float32 [4] -2.811057 -1.4681548 -3.078598 -2.8457766
in max float32 [4] 2.4659326 1.6913309 1.931515 1.1851659
out outputs float32 [2, 3, 4] 2.4722905 1.6916932 1.9330356 1.190239 -2.8046994 0.23633948
  -3.0770772 -1.6028551 2.4722905 1.6916932 -3.0770772 1.190239 -2.8046994 -1.4677926 -3.0770772
  1.190239 2.4722905 1.6916932 1.755512 1.190239 -2.8046994 -1.4677926 -3.0770772 1.190239

example recorded case 2
attr num_bits INT 8
attr narrow_range BOOLEAN false
in inputs float32 [2, 3, 4] 12.576762 -12.253582 20.16847 -12.401576 -20.56899 8.687947 -13.565619
  12.878538 16.411112 2.2760653 10.96251 24.221361 -2.6888723 -9.931696 13.854781 1.2690783 47.03891
  13.725117 -48.425537 -43.227642 -10.965343 27.701311 -20.021702 6.588473
in min float32 [4] -2.763659 -1.0589392 -0.76299614 -1.5820985
in max float32 [4] 1.111574 0.95212775 0.6000774 2.3070707
out outputs float32 [2, 3, 4] 1.1093805 -1.056796 0.5986833 -1.5861709 -2.7658527 0.954271
  -0.7643903 2.3029983 1.1093805 0.954271 0.5986833 2.3029983 -2.6898677 -1.056796 0.5986833
  1.2658864 1.1093805 0.954271 -0.7643903 -1.5861709 -2.7658527 0.954271 -0.7643903 2.3029983
)")

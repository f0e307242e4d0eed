#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/norm/norm.h"

namespace heddle {
namespace {

// Only "NCHW" has the channels second.
NormLayout LayoutOf(const OpContext& ctx, const Shape& x) {
  return BatchLayout(x, ctx.Str("data_layout") != "NCHW");
}

Status CheckShapes(const ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& scale = ctx.InShape("Scale");
  if (!x.known_rank()) return Status::Ok();
  if (x.rank() < 2) return InvalidArgument("X has shape ", x.ToString(), ", expected rank 2 or 4");
  const int64_t channels = x.dim(ctx.Str("data_layout") != "NCHW" || x.rank() == 2 ? -1 : 1);
  if (scale.is_static() && channels >= 0 && scale.numel() != channels)
    return InvalidArgument("Scale has shape ", scale.ToString(), ", X has ", channels, " channels");
  return Status::Ok();
}

Status AffineShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckShapes(ctx));
  if (ctx.InShape("Bias").is_static() && ctx.InShape("Scale").is_static() &&
      ctx.InShape("Bias").numel() != ctx.InShape("Scale").numel())
    return InvalidArgument("Bias has shape ", ctx.InShape("Bias").ToString(), ", Scale ",
                           ctx.InShape("Scale").ToString());
  return SameShape(ctx);
}

// Mean 0 and variance 1: what is left of a normalisation is its scale and bias.
template <typename T>
struct Plain {
  Tensor hold;
  NormStats<T> stats;
  Plain(const KernelContext& ctx, const NormLayout& layout) {
    const int64_t n = layout.groups;
    hold = ctx.Scratch(sizeof(T) == 4 ? DType::kF32 : DType::kF64, {2 * n});
    T* data = hold.mutable_data<T>();
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) data[i] = T(0), data[n + i] = T(1);
    stats = {data, data + n, true};
  }
};

template <typename T>
struct AffineChannel {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const NormLayout layout = LayoutOf(ctx, x.shape());
    const Plain<T> plain(ctx, layout);
    NormForward<T>(ctx, layout, x.data<T>(), plain.stats,
                   {ctx.In("Scale").data<T>(), ctx.In("Bias").data<T>()},
                   ctx.Out("Out").mutable_data<T>());
    return Status::Ok();
  }
};

Status AffineGradShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckShapes(ctx));
  const Shape &x = ctx.InShape("X"), &grad = ctx.InShape("Out@GRAD");
  if (x.is_static() && grad.is_static() && !(x == grad))
    return InvalidArgument("Out@GRAD has shape ", grad.ToString(), ", X ", x.ToString());
  const DType dtype = ctx.InDType("X");
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", x, dtype);
  if (ctx.HasOut("Scale@GRAD")) ctx.SetOut("Scale@GRAD", ctx.InShape("Scale"), dtype);
  if (ctx.HasOut("Bias@GRAD")) ctx.SetOut("Bias@GRAD", ctx.InShape("Scale"), dtype);
  return Status::Ok();
}

template <typename T>
struct AffineChannelGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const NormLayout layout = LayoutOf(ctx, x.shape());
    const Plain<T> plain(ctx, layout);
    Tensor hold = ctx.Scratch(sizeof(T) == 4 ? DType::kF32 : DType::kF64, {2 * layout.groups});
    T* sums = hold.mutable_data<T>();
    const auto out = [&](Key key, T* other) {
      Tensor* t = ctx.OutOpt(key);
      return t ? t->mutable_data<T>() : other;
    };
    NormBackward<T>(ctx, layout, x.data<T>(), ctx.In("Out@GRAD").data<T>(), plain.stats,
                    ctx.In("Scale").data<T>(), out("X@GRAD", nullptr), out("Bias@GRAD", sums),
                    out("Scale@GRAD", sums + layout.groups));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(affine_channel) {
  op.Doc("Scale * x + Bias, per channel");
  op.Input("X").Input("Scale").Input("Bias").Output("Out").Inplace("X", "Out");
  op.Attr("data_layout", "AnyLayout").InferShape(AffineShape);
  op.Kernels<AffineChannel, float, double>();
}
HEDDLE_OP(affine_channel_grad) {
  op.Input("X").Input("Scale").Input("Out@GRAD").Output("X@GRAD", kOptional);
  op.Output("Scale@GRAD", kOptional).Output("Bias@GRAD", kOptional);
  op.Attr("data_layout", "AnyLayout").InferShape(AffineGradShape);
  op.Kernels<AffineChannelGrad, float, double>();
}

HEDDLE_EXAMPLES(affine_channel, R"(
example float64 2x3x3x4, data_layout NHWC
attr data_layout STRING "NHWC"
in Bias float64 [4] 0.397 0.595 0.2 0.792
in Scale float64 [4] 0.199 0.397 0.794 0.595
in X float64 [2, 3, 3, 4] 0.069 0.356 0.602 0.315 0.055 0.739 0.876 0.041 0.137 0.123 0.493 0.438
  0.534 0.479 0.725 0.096 0.547 0.465 0.274 0.219 0.903 0.383 0.958 0.643 0.944 0.93 0.247 0.794
  0.862 0.329 0.78 0.233 0.11 0.37 0.616 0.452 0.52 0.164 0.178 0.082 0.205 0.671 0.151 0.411 0.301
  0.684 0.26 0.192 0.985 0.397 0.753 0.766 0.342 0.821 0.424 0.698 0.288 0.971 0.575 0.807 0.588
  0.657 0.917 0.835 0.506 0.561 0.63 0.014 0.848 0.028 0.889 0.712
out Out float64 [2, 3, 3, 4] 0.410731 0.736332 0.677988 0.979425 0.407945 0.8883829999999999
  0.8955440000000001 0.816395 0.424263 0.6438309999999999 0.591442 1.05261 0.503266
  0.7851629999999999 0.77565 0.84912 0.505853 0.779605 0.41755600000000004 0.922305 0.576697
  0.747051 0.9606520000000001 1.174585 0.584856 0.96421 0.396118 1.26443 0.568538 0.725613 0.81932
  0.9306350000000001 0.41889000000000004 0.7418899999999999 0.689104 1.06094 0.50048
  0.6601079999999999 0.341332 0.84079 0.43779500000000005 0.861387 0.319894 1.036545 0.456899
  0.866548 0.40644 0.90624 0.5930150000000001 0.752609 0.797882 1.24777 0.465058 0.9209369999999999
  0.536656 1.20731 0.45431200000000005 0.980487 0.65655 1.272165 0.514012 0.855829
  0.9280980000000001 1.288825 0.497694 0.817717 0.7002200000000001 0.80033 0.565752 0.606116
  0.9058660000000001 1.21564

example float32 2x3x3x4, data_layout NHWC
attr data_layout STRING "NHWC"
in Bias float32 [4] 0.397 0.595 0.2 0.792
in Scale float32 [4] 0.199 0.397 0.794 0.595
in X float32 [2, 3, 3, 4] 0.069 0.356 0.602 0.315 0.055 0.739 0.876 0.041 0.137 0.123 0.493 0.438
  0.534 0.479 0.725 0.096 0.547 0.465 0.274 0.219 0.903 0.383 0.958 0.643 0.944 0.93 0.247 0.794
  0.862 0.329 0.78 0.233 0.11 0.37 0.616 0.452 0.52 0.164 0.178 0.082 0.205 0.671 0.151 0.411 0.301
  0.684 0.26 0.192 0.985 0.397 0.753 0.766 0.342 0.821 0.424 0.698 0.288 0.971 0.575 0.807 0.588
  0.657 0.917 0.835 0.506 0.561 0.63 0.014 0.848 0.028 0.889 0.712
out Out float32 [2, 3, 3, 4] 0.41073102 0.73633206 0.677988 0.979425 0.407945 0.88838303 0.895544
  0.816395 0.424263 0.643831 0.591442 1.05261 0.50326604 0.78516304 0.77565 0.84912 0.505853
  0.77960503 0.417556 0.922305 0.576697 0.747051 0.960652 1.174585 0.58485603 0.96421003 0.396118
  1.26443 0.568538 0.725613 0.81931996 0.930635 0.41889 0.7418901 0.689104 1.06094 0.50048
  0.66010803 0.34133202 0.84079 0.437795 0.861387 0.31989402 1.036545 0.45689902 0.86654806
  0.40644002 0.90624 0.593015 0.752609 0.797882 1.2477701 0.46505803 0.92093706 0.536656 1.20731
  0.45431203 0.98048705 0.65655 1.2721651 0.51401204 0.855829 0.928098 1.288825 0.49769402 0.817717
  0.70022 0.80033 0.565752 0.60611606 0.905866 1.2156401
)")

HEDDLE_EXAMPLES(affine_channel_grad, R"(
example float64 3x3x2x2, data_layout NHWC
attr data_layout STRING "NHWC"
in Out@GRAD float64 [3, 3, 2, 2] 0.8 -0.7 -0.3 -0.5 0.9 0.9 0 0.6 0.7 0.4 0.5 0.7 -0.1 -0.1 0.7 -0.3
  -0.3 0.4 0.3 -0.9 -0 0.1 -0 -0.5 -0.6 0.4 0.2 0.1 0.3 -0.4 0.9 0.6 -0.3 0.4 0.7 -0.9
in Scale float64 [2] 0.1 0.65
in X float64 [3, 3, 2, 2] 0.07 -0.25 -0.09 0.81 0.71 -0.41 0.23 -0.95 -0.36 -0.79 -0.31 0.17 -0.68
  -0.47 0.6 -0.73 0.49 -0.63 -0.89 0.65 0.76 -0.52 0.12 -0.15 -0.04 0.92 -0.84 0.55 -0.2 0.44 0.33
  0.87 0.39 0.28 -0.57 0.01
out Bias@GRAD float64 [2] 4.3999999999999995 0.2999999999999997
out Scale@GRAD float64 [2] -0.033999999999999975 -1.042
out X@GRAD float64 [3, 3, 2, 2] 0.08000000000000002 -0.45499999999999996 -0.03 -0.325
  0.09000000000000001 0.5850000000000001 0 0.39 0.06999999999999999 0.26 0.05 0.45499999999999996
  -0.010000000000000002 -0.065 0.06999999999999999 -0.195 -0.03 0.26 0.03 -0.5850000000000001 -0
  0.065 -0 -0.325 -0.06 0.26 0.020000000000000004 0.065 0.03 -0.26 0.09000000000000001 0.39 -0.03
  0.26 0.06999999999999999 -0.5850000000000001

example float32 3x3x2x2, data_layout NHWC
attr data_layout STRING "NHWC"
in Out@GRAD float32 [3, 3, 2, 2] 0.8 -0.7 -0.3 -0.5 0.9 0.9 0 0.6 0.7 0.4 0.5 0.7 -0.1 -0.1 0.7 -0.3
  -0.3 0.4 0.3 -0.9 -0 0.1 -0 -0.5 -0.6 0.4 0.2 0.1 0.3 -0.4 0.9 0.6 -0.3 0.4 0.7 -0.9
in Scale float32 [2] 0.1 0.65
in X float32 [3, 3, 2, 2] 0.07 -0.25 -0.09 0.81 0.71 -0.41 0.23 -0.95 -0.36 -0.79 -0.31 0.17 -0.68
  -0.47 0.6 -0.73 0.49 -0.63 -0.89 0.65 0.76 -0.52 0.12 -0.15 -0.04 0.92 -0.84 0.55 -0.2 0.44 0.33
  0.87 0.39 0.28 -0.57 0.01
out Bias@GRAD float32 [2] 4.4 0.29999995
out Scale@GRAD float32 [2] -0.03400004 -1.0419997
out X@GRAD float32 [3, 3, 2, 2] 0.080000006 -0.45499998 -0.030000001 -0.325 0.089999996 0.585 0
  0.39000002 0.07 0.26 0.05 0.45499998 -0.010000001 -0.065 0.07 -0.19500001 -0.030000001 0.26
  0.030000001 -0.585 -0 0.065 -0 -0.325 -0.060000002 0.26 0.020000001 0.065 0.030000001 -0.26
  0.089999996 0.39000002 -0.030000001 0.26 0.07 -0.585
)")

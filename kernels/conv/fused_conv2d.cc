// fused_conv2d and fused_conv2d_transpose: convolutions with their epilogue. Operators of heddle,
// made by fusion passes.
#include "core/shapes.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/spread_residual.h"

namespace heddle {
namespace {

struct FusedConvState final : KernelState {
  std::unique_ptr<ConvRunner> runner;
  std::optional<Epilogue> late;  // the epilogue after a residual with another batch size
  Shape product;
};

template <bool kTransposed>
Result<ConvGeometry> Geometry(const OpContext& ctx, const Shape& input, const Shape& filter) {
  if constexpr (kTransposed) return ConvTransposeGeometryOf(ctx, input, filter);
  return ConvGeometryOf(ctx, input, filter);
}

template <bool kTransposed>
Status FusedConvShape(ShapeContext& ctx) {
  const Shape& input = ctx.InShape("Input");
  const Shape& filter = ctx.InShape("Filter");
  if (!input.known_rank() || !filter.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g, Geometry<kTransposed>(ctx, input, filter));
  Shape out = kTransposed ? ConvInShape(g) : ConvOutShape(g);
  const int64_t channels = kTransposed ? g.in_c : g.out_c;
  if (ctx.HasIn("Bias") && ctx.InShape("Bias").is_static() && channels >= 0 &&
      ctx.InShape("Bias").numel() != channels)
    return InvalidArgument("Bias has shape ", ctx.InShape("Bias").ToString(), ", expected ",
                           channels, " elements");
  if (ctx.HasIn("ResidualData") && ctx.InShape("ResidualData").is_static() && out.is_static()) {
    HEDDLE_ASSIGN_OR_RETURN(out, ResidualSum(out, ctx.InShape("ResidualData")));
  }
  ctx.SetOut("Output", out, ctx.InDType("Input"));
  return Status::Ok();
}

template <bool kTransposed>
Result<std::unique_ptr<KernelState>> PrepareFusedConv(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g,
                          Geometry<kTransposed>(ctx, ctx.InShape("Input"), ctx.InShape("Filter")));
  HEDDLE_ASSIGN_OR_RETURN(
      Epilogue epilogue,
      ParseEpilogue(ctx.Str("fuse_activation"), ctx.Float("fuse_alpha"), ctx.Float("fuse_beta"),
                    ctx.HasIn("Bias"), ctx.HasIn("ResidualData")));
  epilogue.scale *= static_cast<float>(ctx.Float("fuse_scale"));
  epilogue.shift = static_cast<float>(ctx.Float("fuse_shift"));
  epilogue.bf16 = ctx.Bool("fuse_bf16");
  auto state = std::make_unique<FusedConvState>();
  state->product = kTransposed ? ConvInShape(g) : ConvOutShape(g);
  if (ctx.HasIn("ResidualData") && !(ctx.InShape("ResidualData") == state->product))
    state->late = TakeFromResidual(&epilogue);
  HEDDLE_ASSIGN_OR_RETURN(
      state->runner, MakeConv(ctx, g, DType::kF32,
                              kTransposed ? ConvDirection::kBackwardData : ConvDirection::kForward,
                              ctx.ConstIn("Filter"), epilogue));
  state->facts().implementation = state->runner->name();
  if (!state->runner->reads_filter()) ctx.MarkPacked("Filter", state.get());
  return std::unique_ptr<KernelState>(std::move(state));
}

Status RunFusedConv(KernelContext& ctx) {
  const Tensor* bias = ctx.InOpt("Bias");
  const Tensor* residual = ctx.InOpt("ResidualData");
  const auto& state = ctx.State<FusedConvState>();
  float* out = ctx.Out("Output").mutable_data<float>();
  Tensor product = state.late ? ctx.CallScratch(DType::kF32, state.product) : Tensor();
  state.runner->Run(ctx, {.src = ctx.In("Input").raw(),
                          .filter = ctx.In("Filter").raw(),
                          .bias = bias ? bias->raw() : nullptr,
                          .residual = residual && !state.late ? residual->raw() : nullptr,
                          .dst = state.late ? product.mutable_data<float>() : out});
  if (state.late)
    SpreadResidual(*state.late, state.product, product.data<float>(), residual->shape(),
                   residual->data<float>(), out);
  return Status::Ok();
}

template <bool kTransposed>
double Cost(const ShapeContext& ctx) {
  return ConvCost(ctx, kTransposed);
}

template <bool kTransposed>
void Define(OpDef& op) {
  op.Input("Input").Input("Filter").Input("Bias", kOptional).Input("ResidualData", kOptional);
  op.Output("Output");
  ConvAttrs(op, 2, kTransposed);
  op.Attr("fuse_activation", "").Attr("fuse_alpha", 0.0).Attr("fuse_beta", 0.0);
  op.Attr("fuse_scale", 1.0).Attr("fuse_shift", 0.0);
  op.Attr("fuse_bf16", false);
  op.Traits(kChannelsLast)
      .Inplace("ResidualData", "Output")
      .InferShape(FusedConvShape<kTransposed>);
  op.Cost(Cost<kTransposed>)
      .Prepare(PrepareFusedConv<kTransposed>)
      .Kernel(DType::kF32, RunFusedConv);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_conv2d) {
  op.Doc(
      "fuse_scale activation(convolution + Bias per channel + ResidualData) + fuse_shift; the "
      "convolution or ResidualData may have a batch of 1. "
      "fuse_alpha and fuse_beta: the "
      "slope of leaky_relu, the bounds of clip, factor and offset inside hard_swish = "
      "x min(max(alpha x + beta, 0), 1) and hard_sigmoid (both 0: their usual constants), the "
      "factor in swish; gelu is the tanh form when alpha is 1. hard_swish_divided_last is x "
      "min(max("
      "x + 3, 0), 6) / 6, whose product may overflow. fuse_bf16: a constant Filter and "
      "Input "
      "may be rounded to bfloat16");
  Define<false>(op);
}
HEDDLE_OP(fused_conv2d_transpose) {
  op.Doc("activation(transposed convolution + Bias per channel + ResidualData), as fused_conv2d");
  Define<true>(op);
}

HEDDLE_EXAMPLES(fused_conv2d, R"(
example 3x3, relu
attr paddings INTS [1, 1]
attr fuse_activation STRING "relu"
in Input float32 [1, 2, 3, 4] 0.97 0.04 -0.49 0.43 0.9 0.77 0.52 -0.48 0.45 -0.61 -0.83 0.17 0.35
  -0.59 -0.33 -0.42 0.86 0.22 0.79 -0.64 0.18 0.39 0.8 -0.03
in Filter float32 [2, 2, 3, 3] 0.74 -0.31 0.35 0.23 -0.63 -0.22 0.9 0.21 0.38 -0.91 0.58 -0.88 -0.09
  -0.82 0.81 -0.66 -0.12 0.32 0.28 0.91 -0.12 0.31 0.82 0.08 0.04 0.19 0.79 -0.59 -0.92 0.72 0.28
  0.96 0.94 0.52 -0.71 -0.06
in Bias float32 [2] -0.65 0.17
from conv2d Input=Input Filter=Filter -> Output=t
attr paddings INTS [1, 1]
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from relu X=u -> Out=Output
out Output float32 [1, 2, 3, 4] 0 0.6688 0*8 0.04159999 0 0.90550005 0.5224 0 0.6699 1.5855 1.7972
  0.46689993 0.816 1.1234 1.669 0 0.07880005

example 3x3, leaky_relu
attr paddings INTS [1, 1]
attr fuse_activation STRING "leaky_relu"
attr fuse_alpha FLOAT 0.2
in Input float32 [1, 2, 3, 4] 0.29 -0.82 0.03 0.67 -0.16 -0.87 0.75 0.75 -0.19 0.59 -0.53 -1 -0.96
  -0.33 0.95 -0.91 0.86 -0.91 0.89 -0.31 0.43 -0.23 -0.81 -0.67
in Filter float32 [2, 2, 3, 3] -0.46 -0.29 0.17 0.24 -0.04 0.47 0.61 0.12 0.57 -0.55 -0.36 0.27 0.74
  -0.91 0.77 -0.97 -0.17 0.57 0.65 -0.53 -0.75 -0.1 0.3 -0.01 -0.43 0.83 0.62 -0.07 0.83 -0.51 0.71
  0.38 -0.55 0.74 -0.14 0.91
in Bias float32 [2] 0.98 -0.68
from conv2d Input=Input Filter=Filter -> Output=t
attr paddings INTS [1, 1]
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from leaky_relu X=u -> Out=Output
attr alpha FLOAT 0.2
out Output float32 [1, 2, 3, 4] 0.022500038 1.4712 -0.03419998 2.2284 -0.15269999 3.3046 -0.16938
  2.124 0.03969997 1.1138 1.1304 -0.0074599744 -0.47776 -0.17987998 0.41299993 0.8487 -0.024119986
  -0.27834 -0.45373997 -0.45619997 1.4621999 -0.25801998 -0.31112003 -0.39726

example 3x3, clip
attr paddings INTS [1, 1]
attr fuse_activation STRING "clip"
attr fuse_alpha FLOAT -0.5
attr fuse_beta FLOAT 0.4
in Input float32 [1, 2, 3, 4] 0.91 0.53 -0.31 0.05 -0.06 -0.27 -0.01 -0.45 0.74 0.7 -0.19 -0.5 -0.68
  0.83 0.88 0.21 0.85 -0.35 -0.42 -0.04 -0.03 -0.82 0.49 0.24
in Filter float32 [2, 2, 3, 3] -0.05 -0.49 0.94 0.05 0.87 -0.06 0.51 0.59 0.34 0.28 -0.94 0.78 0.12
  -0.06 -0.33 -0.56 0.67 0.63 0.45 0.22 0.08 0.88 -0.69 0.96 0.1 -0.48 0.99 0.78 0.8 0.69 -0.2 0.13
  0.14 -0.35 0.89 -0.15
in Bias float32 [2] -0.47 0.36
from conv2d Input=Input Filter=Filter -> Output=t
attr paddings INTS [1, 1]
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from clip X=u -> Out=Output
attr min FLOAT -0.5
attr max FLOAT 0.4
out Output float32 [1, 2, 3, 4] 0.27860013 -0.5 -0.5 -0.4112 0.4 -0.5 0.28620002 -0.5 -0.5 0.4 -0.5
  -0.5 0.4 0.4 0.35310003 0.23040003 0.4 0.20879999 0.4 0.4 0.4 0.31980005 0.092099994 0.0079

example 3x3, hard_swish
attr paddings INTS [1, 1]
attr fuse_activation STRING "hard_swish"
attr fuse_alpha FLOAT 0.0
attr fuse_beta FLOAT 0.0
in Input float32 [1, 2, 3, 4] -0.07 -0.4 -0.33 -0.5 -0.32 -0.98 -0.66 0.02 0.79 -0.8 -0.58 0.05 0.61
  0.52 0.66 -0.42 -0.22 0.03 -0.3 0.24 -0.54 0.44 -0.71 -0.68
in Filter float32 [2, 2, 3, 3] -0.86 -0.52 -0.66 0.64 0.62 0.08 -0.69 0.04 0.85 -0.36 -0.2 -0.45
  0.13 0.72 -0.62 -0.03 -0.31 -0.43 -0.78 -0.25 -0.21 -0.59 -0.27 0.43 0.02 0.97 -0.63 0.58 0.42
  0.25 0.02 0.66 -0.25 0.49 -0.89 0.61
in Bias float32 [2] 0.1 -0.53
from conv2d Input=Input Filter=Filter -> Output=t
attr paddings INTS [1, 1]
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from hard_swish X=u -> Out=Output
out Output float32 [1, 2, 3, 4] -0.2543282 -0.18339787 0.7158165 -0.113331825 -0.34554398
  -0.37313437 0.28521562 0.54408544 0.43747044 1.8803498 0.17343263 -0.09545267 0.057338726
  -0.35907617 -0.05446427 -0.2976384 1.114319 -0.29169184 0.4864669 0.57653874 -0.3713887
  -0.061817855 0.43673453 -0.105208784

example 3x3, swish
attr paddings INTS [1, 1]
attr fuse_activation STRING "swish"
in Input float32 [1, 2, 3, 4] 0.11 0.94 -0.55 0.03 0.66 0.37 -0.5 0.03 0.6 0.32 0.64 0.12 0.56 0.29
  0.46 -0.53 -0.49 -0.07 -0.81 -0.98 0.69 -0.19 0.04 -0.48
in Filter float32 [2, 2, 3, 3] -0.64 -0.3 0.26 0.05 -0.13 0.81 -0.21 -0.8 0.39 -0.52 -0.59 0.8 0.96
  -0.85 -0.22 -0.94 -0.06 -0.81 -0.72 0.02 0.21 0.83 -0.28 0.34 0.08 -0.19 -0.39 0.81 0.23 -0.02
  0.35 -0.06 -0.7 0.67 0.79 -0.68
in Bias float32 [2] -0.03 -0.21
from conv2d Input=Input Filter=Filter -> Output=t
attr paddings INTS [1, 1]
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from swish X=u -> Out=Output
attr beta FLOAT 1
out Output float32 [1, 2, 3, 4] -0.056536373 0.046478886 1.0812165 1.471518 0.30098698 -0.23151444
  -0.13724081 0.09443269 -0.11401058 0.1573059 -0.1778745 1.4836254 -0.24323753 -0.15039289
  0.99334013 -0.25179484 0.3621706 0.5707505 0.48020896 -0.19755407 -0.08923091 -0.13757968
  -0.13088746 -0.086204745

example 3x3, gelu
attr paddings INTS [1, 1]
attr fuse_activation STRING "gelu"
in Input float32 [1, 2, 3, 4] 0.67 -0.9 -0.04 0.92 0.38 0.09 -0.58 0.91 0.38 -0.52 0.25 0.97 0.59
  -0.99 -0.74 0.65 0.11 -0.7 0.25 -0.03 -0.16 0.01 -0.8 0.17
in Filter float32 [2, 2, 3, 3] -0.58 0.8 0.51 0.76 0.79 -0.89 0.43 0.03 -0.18 -0.09 -0.33 0.29 0.32
  -0.14 0.89 -0.54 -0.86 -0.46 0.1 -0.55 0.18 -0.85 0.21 0.92 -0.8 0.34 -0.27 0.34 0.33 0.46 0.59
  -0.11 0.06 -0.26 -0.95 -0.09
in Bias float32 [2] 0.2 0.12
from conv2d Input=Input Filter=Filter -> Output=t
attr paddings INTS [1, 1]
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from gelu X=u -> Out=Output
out Output float32 [1, 2, 3, 4] 0.61952394 0.26273075 -0.16353922 0.1409059 -0.13481642 0.7453393
  0.2696633 1.5078299 0.95617896 -0.1532756 -0.16863349 1.8764117 -0.16643308 0.13892004 0.52243835
  0.4133909 -0.0629827 -0.16468512 0.965797 0.42079926 -0.16993508 -0.14167869 1.8820933 -0.16748564

example 3x3, sigmoid
attr paddings INTS [1, 1]
attr fuse_activation STRING "sigmoid"
in Input float32 [1, 2, 3, 4] 0.44 -0.45 -0.54 0.29 -0.57 -0.5 0.48 0.22 0.03 0.18 -0.68 0.14 0.52
  -0.79 0.3 0.21 -0.78 -0.46 0.9 -0.96 0.26 0.53 0.01 0.81
in Filter float32 [2, 2, 3, 3] -0.74 -0.07 0.85 -0.19 -0.09 0.44 0.23 -0.91 -0.12 0.56 0.16 -0.1
  -0.39 -0.55 0.06 0.1 0.38 0.58 0.76 -0.4 0.9 0.78 0.81 0.82 0.08 0.47 0.1 0.34 -0.77 -0.46 -0.07
  -0.07 -0.74 -0.8 -0.37 -0.89
in Bias float32 [2] -0.53 0.54
from conv2d Input=Input Filter=Filter -> Output=t
attr paddings INTS [1, 1]
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from sigmoid X=u -> Out=Output
out Output float32 [1, 2, 3, 4] 0.25246662 0.49362534 0.27856314 0.2591099 0.45236984 0.49632505
  0.6496042 0.5354156 0.2633556 0.27309027 0.47522032 0.29255652 0.8108741 0.40936285 0.7241817
  0.5237322 0.25152415 0.44677737 0.3770238 0.5533956 0.70924085 0.49067608 0.2360245 0.8002088

example 3x3, tanh
attr paddings INTS [1, 1]
attr fuse_activation STRING "tanh"
in Input float32 [1, 2, 3, 4] -0.92 -0.82 -0.62 -0.19 0.83 -0.89 0.47 -0.47 0.09 0.48 0.38 0.61
  -0.85 0.6 0.2 -0.02 -0.25 0.86 0.23 0.35 -0.28 -0.33 -0.38 0.25
in Filter float32 [2, 2, 3, 3] 0.1 -0.52 -0.85 0.46 0.24 0.71 0.79 0.37 -0.38 1 0.13 -0.35 0.29
  -0.41 -0.11 -0.23 0.41 -0.45 0.9 -0.08 -0.08 0.9 0.16 -0.92 0.61 0.13 -0.6 -0.13 -0.8 0.96 0.6
  -0.65 0.83 0.43 0.69 0.77
in Bias float32 [2] -0.58 -0.84
from conv2d Input=Input Filter=Filter -> Output=t
attr paddings INTS [1, 1]
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from tanh X=u -> Out=Output
out Output float32 [1, 2, 3, 4] -0.73737425 -0.9354466 -0.9423129 -0.5054504 -0.25924596 -0.29560775
  0.03678342 0.3770361 -0.07495907 -0.12937097 0.77438915 0.0951116 0.960265 -0.83095074 -0.5984958
  -0.6226981 0.9301497 -0.99302584 -0.92777944 -0.6719555 -0.31735215 -0.74194837 -0.8880662
  -0.56503576

example 1x1, residual, scaled
attr fuse_activation STRING "relu"
attr fuse_scale FLOAT 0.5
attr fuse_shift FLOAT 0.25
in Input float32 [2, 3, 2, 2] 0.24 -0.96 0.88 0.38 0.57 -0.63 -0.22 -0.75 0.18 -0.37 -0.96 -0.42
  -0.81 0.54 -0.25 -0.79 -0.66 -0.35 0.27 -0.71 -0.4 0.82 0.23 0.7
in Filter float32 [2, 3, 1, 1] 0.49 -0.83 -0.72 0.58 0.52 -0.82
in Bias float32 [2] -0.83 -0.56
in ResidualData float32 [2, 2, 2, 2] -0.72 -0.76 0.31 0.57 -0.26 -0.25 -0 -0.52 -0.81 0.26 -0.74
  0.16 -0.22 -0.91 -0.4 0.29
from conv2d Input=Input Filter=Filter -> Output=t
attr paddings INTS [0, 0]
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from elementwise_add X=u Y=ResidualData -> Out=v
from relu X=v -> Out=w
from scale X=w -> Out=Output
attr scale FLOAT 0.5
attr bias FLOAT 0.25
out Output float32 [2, 2, 2, 2] 0.25 0.25 0.64250004 0.67555 0.25 0.25 0.56159997 0.25*9

example residual of batch 1
in Input float32 [2, 1, 2, 2] 0.21 0.48 0.28 0.95 -0.38 -0.19 0.2 -0.03
in Filter float32 [2, 1, 1, 1] 0.6 0.74
in ResidualData float32 [1, 2, 2, 2] -0.18 0.34 -0.09 -0.05 0.83 -0.65 -0.99 -0.75
from conv2d Input=Input Filter=Filter -> Output=t
attr paddings INTS [0, 0]
from elementwise_add X=t Y=ResidualData -> Out=Output
out Output float32 [2, 2, 2, 2] -0.054000005 0.628 0.07800001 0.52 0.98539996 -0.29479998 -0.7828
  -0.04699999 -0.408 0.22600001 0.030000001 -0.068 0.5488 -0.79059994 -0.842 -0.7722

example depthwise, channels last, stride 2
attr strides INTS [2, 2]
attr paddings INTS [1, 1]
attr groups INT 2
attr data_format STRING "NHWC"
attr fuse_activation STRING "relu"
in Input float32 [1, 4, 3, 2] 0.22 -0.31 0.03 -0.86 -0.75 0.79 0.29 0.6 0.59 -0.74 -0.94 -0.55 -0.9
  -0.95 -0.02 -0.2 -0.91 0.87 -0.92 -0.12 0.86 -0.35 -0.38 0.91
in Filter float32 [2, 1, 3, 3] 0.3 0.85 -0.64 -0.69 -0.3 0.06 0.43 -0.9 0.94 0.74 0.82 0.76 0.26
  -0.25 0.33 0.06 -0.57 -0.95
in Bias float32 [2] -0.98 -0.14
from conv2d Input=Input Filter=Filter -> Output=t
attr strides INTS [2, 2]
attr paddings INTS [1, 1]
attr groups INT 2
attr data_format STRING "NHWC"
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 3
from relu X=u -> Out=Output
out Output float32 [1, 2, 2, 2] 0 0.014699981 0.32399988 0 0.79410005 0.362 0 0

example dilated, one-sided paddings
attr dilations INTS [2, 2]
attr paddings INTS [1, 0, 0, 1]
in Input float32 [1, 1, 4, 4] 0.67 0.24 -0.54 0.65 0.24 -0.5 0.6 -0.05 -0.59 -0.51 -0.15 0.31 -0.88
  -0.2 0.14 -0.81
in Filter float32 [2, 1, 2, 2] 0.31 -0.68 0.94 -0.43 -0.02 0.41 -0.76 -0.93
in Bias float32 [2] 0.41 0.09
from conv2d Input=Input Filter=Filter -> Output=t
attr dilations INTS [2, 2]
attr paddings INTS [1, 0, 0, 1]
from elementwise_add X=t Y=Bias -> Out=Output
attr axis INT 1
out Output float32 [1, 2, 3, 3] 0.37759995 -0.03850001 0.974 0.49480003 -0.5703 0.10159999 -0.811
  0.4493 0.7276 -0.65040004 0.5165 -0.366 0.44309995 0.45099998 0.2148 0.8698 0.9848 -0.028399996
)")

HEDDLE_EXAMPLES(fused_conv2d_transpose, R"(
example stride 2, relu
attr strides INTS [2, 2]
attr fuse_activation STRING "relu"
in Input float32 [1, 2, 2, 2] 0.95 0.34 0.86 -0.85 0.87 -0.38 -0.01 -1
in Filter float32 [2, 2, 2, 2] -0.55 0.54 0.95 0.23 -0.22 -0.58 -0.01 0.29 -0.37 -0.37 -0.25 -0.27 0
  -0.86 0.67 -0.59
in Bias float32 [2] -0.79 -0.67
from conv2d_transpose Input=Input Filter=Filter -> Output=t
attr strides INTS [2, 2]
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from relu X=u -> Out=Output
out Output float32 [1, 2, 4, 4] 0*10 0.047500014 0 0.029500008 0*14 0.683 0*4

example residual, output padding
attr strides INTS [2, 2]
attr paddings INTS [1, 1]
attr output_padding INTS [1, 1]
attr fuse_activation STRING "sigmoid"
in Input float32 [1, 1, 2, 2] -0.08 0 0.43 -0.98
in Filter float32 [1, 2, 3, 3] 0.36 -0.56 0.16 -0.38 0.25 -0.57 -0.89 -0.2 0.36 -0.63 -0.22 0.14
  -0.78 0.19 0.06 0.99 0.45 0.05
in Bias float32 [2] -0.2 0.97
in ResidualData float32 [1, 2, 4, 4] 0.45 0.98 0.25 -0.78 -0.31 -0.34 0.11 0.91 -0.1 0.28 0.5 -1
  -0.14 0.98 -0.81 0.28 0.06 0.55 -0.67 0.21 -0.03 0.6 0.96 -0.26 0.13 0.39 -0.05 0.26 0.82 -0.55
  -0.08 -0.47
from conv2d_transpose Input=Input Filter=Filter -> Output=t
attr strides INTS [2, 2]
attr paddings INTS [1, 1]
attr output_padding INTS [1, 1]
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from elementwise_add X=u Y=ResidualData -> Out=v
from sigmoid X=v -> Out=Output
out Output float32 [1, 2, 4, 4] 0.5572479 0.6954238 0.5124974 0.2728918 0.32414228 0.29884583
  0.6127295 0.6348777 0.45202306 0.55164015 0.51374656 0.34493014 0.3950819 0.8589989 0.30703875
  0.43221983 0.7339585 0.81983054 0.5744425 0.7649478 0.6919817 0.904097 0.8952569 0.63940907
  0.7652533 0.8956874 0.6756386 0.7633619 0.8790538 0.37082013 0.61040145 0.610877
)")

// fused_conv2d and fused_conv2d_transpose: convolutions with their epilogue. Operators of heddle,
// made by fusion passes.
#include "core/shapes.h"
#include "kernels/conv/conv.h"
#include "kernels/gemm/spread_residual.h"

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
      .InferShape(FusedConvShape<kTransposed>)
      .Contract("Input: float32; Filter, Bias, ResidualData: as Input");
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

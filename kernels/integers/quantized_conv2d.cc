// quantized_conv2d: a convolution of 8-bit integers whose sums are scaled and rounded again. An
// operator of heddle, made by a pass.
#include "kernels/integers/quantized_ops.h"

namespace heddle {
namespace {

Result<ConvGeometry> QuantizedGeometry(const OpContext& ctx, const Shape& input,
                                       const Shape& filter) {
  return ConvGeometryOf(ctx, input, filter);
}

Status QuantizedConvShape(ShapeContext& ctx) {
  const Shape &input = ctx.InShape("Input"), &filter = ctx.InShape("Filter");
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, ResultTypeOf(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckBytesIn(ctx, "Input"));
  HEDDLE_RETURN_IF_ERROR(CheckBytesIn(ctx, "Filter"));
  if (!input.known_rank() || !filter.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g, QuantizedGeometry(ctx, input, filter));
  for (const Key key : {Key("Factor"), Key("Offset"), Key("FilterZero")})
    HEDDLE_RETURN_IF_ERROR(CheckPerColumn(ctx, key, g.out_c));
  ctx.SetOut("Output", ConvOutShape(g), dtype);
  return Status::Ok();
}

Result<std::unique_ptr<IntegerRunner>> RunnerOf(const PrepareContext* prepare,
                                                const ConvGeometry& g, const QuantizedUse& use,
                                                DType x, const Tensor& filter) {
  return MakeIntegerConv(prepare, {g, x, use.x_zero != 0, filter, use.y_zero, use.result});
}

Result<std::unique_ptr<KernelState>> PrepareQuantizedConv(PrepareContext& ctx) {
  const Shape &input = ctx.InShape("Input"), &filter = ctx.InShape("Filter");
  HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g, QuantizedGeometry(ctx, input, filter));
  auto state = std::make_unique<QuantizedState>();
  const Tensor* const w = ctx.ConstIn("Filter");
  const ConstantOperands constants(ctx, "FilterZero");
  if (w == nullptr || !constants.complete) return std::unique_ptr<KernelState>(std::move(state));
  HEDDLE_ASSIGN_OR_RETURN(state->use, UseOf(ctx, constants.factor, constants.offset,
                                            constants.y_zero, "input_zero", g.out_c));
  // Without padding the zero point of the image is the same for all sums.
  const std::array<int64_t, 3> none{};
  if (g.pad_lo == none && g.pad_hi == none) state->use.MoveZeroIntoOffset(*w, 0);
  HEDDLE_ASSIGN_OR_RETURN(state->runner, RunnerOf(&ctx, g, state->use, ctx.InDType("Input"), *w));
  state->facts().implementation = state->runner->name();
  ctx.MarkPacked("Filter", state.get());
  return std::unique_ptr<KernelState>(std::move(state));
}

Status RunQuantizedConv(KernelContext& ctx) {
  const auto& state = ctx.State<QuantizedState>();
  IntegerOperands o{.x = ctx.In("Input").raw(), .out = ctx.Out("Output").mutable_raw()};
  if (state.runner != nullptr) {
    state.use.Fill(&o);
    state.runner->Run(ctx, o);
    return Status::Ok();
  }
  const Tensor &input = ctx.In("Input"), &filter = ctx.In("Filter");
  HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g,
                          QuantizedGeometry(ctx, input.shape(), filter.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const QuantizedUse use,
                          UseOf(ctx, &ctx.In("Factor"), ctx.InOpt("Offset"),
                                ctx.InOpt("FilterZero"), "input_zero", g.out_c));
  HEDDLE_ASSIGN_OR_RETURN(const auto runner, RunnerOf(nullptr, g, use, input.dtype(), filter));
  use.Fill(&o);
  runner->Run(ctx, o);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(quantized_conv2d) {
  op.Doc(
      "clip(Factor times convolution of Input - input_zero with Filter - FilterZero, plus Offset), "
      "each per channel or one for all, rounded half to even to out_dtype (uint8, int8) or as "
      "float32; sums are exact and padding is zero");
  op.Input("Input").Input("Filter").Input("Factor").Input("Offset", kOptional);
  op.Input("FilterZero", kOptional).Output("Output");
  ConvAttrs(op, 2, false);
  DefineQuantizedResult(op);
  op.Attr("input_zero", 0).Traits(kChannelsLast);
  op.InferShape(QuantizedConvShape)
      .Prepare(PrepareQuantizedConv)
      .Kernel({DType::kU8, DType::kI8}, RunQuantizedConv);
}

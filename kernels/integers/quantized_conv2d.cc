// quantized_conv2d and quantized_conv3d: convolutions of 8-bit integers whose sums are scaled, and
// rounded again or not. Operators of heddle, made by passes.
#include "core/operands/any_address.h"
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
  HEDDLE_RETURN_IF_ERROR(CheckPerColumn(ctx, "InputZero", 1));
  ctx.SetOut("Output", ConvOutShape(g), dtype);
  return Status::Ok();
}

// The zero point of the image, besides the attribute: an operand.
constexpr Key kImageZero = "InputZero";

Result<std::unique_ptr<KernelState>> PrepareQuantizedConv(PrepareContext& ctx) {
  const Shape &input = ctx.InShape("Input"), &filter = ctx.InShape("Filter");
  HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g, QuantizedGeometry(ctx, input, filter));
  auto state = std::make_unique<QuantizedState>();
  const Tensor* const w = ctx.ConstIn("Filter");
  const ConstantOperands constants(ctx, "FilterZero");
  if (w == nullptr || !constants.unscaled) return std::unique_ptr<KernelState>(std::move(state));
  const bool fixed = constants.complete && !ctx.HasIn(kImageZero);
  HEDDLE_ASSIGN_OR_RETURN(
      state->use, UseOf(ctx, fixed ? constants.factor : nullptr, fixed ? constants.offset : nullptr,
                        constants.y_zero, "input_zero", g.out_c));
  state->use.result.offset = ctx.HasIn("Offset");
  state->columns = g.out_c;
  // Without padding the zero point of the image is the same for all sums.
  const std::array<int64_t, 3> none{};
  if (fixed && g.pad_lo == none && g.pad_hi == none) state->use.MoveZeroIntoOffset(*w, 0);
  const bool shifted = state->use.x_zero != 0 || ctx.HasIn(kImageZero);
  HEDDLE_ASSIGN_OR_RETURN(
      state->runner, MakeIntegerConv(&ctx, {g, ctx.InDType("Input"), shifted, *w, state->use.y_zero,
                                            state->use.result}));
  state->facts().implementation = state->runner->name();
  ctx.MarkPacked("Filter", state.get());
  return std::unique_ptr<KernelState>(std::move(state));
}

// With a runner of this run.
Status RunUnprepared(const KernelContext& ctx, IntegerOperands o) {
  const Tensor &input = ctx.In("Input"), &filter = ctx.In("Filter");
  HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g,
                          QuantizedGeometry(ctx, input.shape(), filter.shape()));
  HEDDLE_ASSIGN_OR_RETURN(QuantizedUse use, UseOf(ctx, nullptr, nullptr, ctx.InOpt("FilterZero"),
                                                  "input_zero", g.out_c));
  use.result.offset = ctx.InOpt("Offset") != nullptr;
  ScalesOfRun scales;
  HEDDLE_RETURN_IF_ERROR(scales.Read(ctx, use, g.out_c, kImageZero, input.dtype(), &o));
  HEDDLE_ASSIGN_OR_RETURN(
      const auto runner,
      MakeIntegerConv(nullptr, {g, input.dtype(), o.x_zero != 0, filter, use.y_zero, use.result}));
  runner->Run(ctx, o);
  return Status::Ok();
}

Status RunQuantizedConv(KernelContext& ctx) {
  const auto& state = ctx.State<QuantizedState>();
  IntegerOperands o{.x = ctx.In("Input").raw(), .out = ctx.Out("Output").mutable_raw()};
  if (state.runner == nullptr) return RunUnprepared(ctx, o);
  if (!state.use.factor.empty()) {
    state.use.Fill(&o);
    state.runner->Run(ctx, o);
    return Status::Ok();
  }
  ScalesOfRun scales;
  HEDDLE_RETURN_IF_ERROR(
      scales.Read(ctx, state.use, state.columns, kImageZero, ctx.In("Input").dtype(), &o));
  if (scales.may_give_nan()) return RunUnprepared(ctx, o);
  state.runner->Run(ctx, o);
  return Status::Ok();
}

void DefineQuantizedConv(OpDef& op, int spatial) {
  op.Doc(
      "clip(Factor times convolution of Input - input_zero - InputZero with Filter - FilterZero, "
      "plus Offset), each per channel or one for all, rounded half to even to out_dtype (uint8, "
      "int8) or as float32; sums are exact and padding is zero");
  op.Input("Input").Input("Filter", kAnyAddress).Input("Factor").Input("Offset", kOptional);
  op.Input("FilterZero", kOptional).Input("InputZero", kOptional).Output("Output");
  ConvAttrs(op, spatial, false);
  DefineQuantizedResult(op);
  op.Attr("input_zero", 0);
  op.InferShape(QuantizedConvShape)
      .Prepare(PrepareQuantizedConv)
      .Kernel({DType::kU8, DType::kI8}, RunQuantizedConv);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(quantized_conv2d) {
  DefineQuantizedConv(op, 2);
  op.Traits(kChannelsLast);
}
HEDDLE_OP(quantized_conv3d) { DefineQuantizedConv(op, 3); }

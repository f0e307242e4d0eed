// quantized_matmul: a product of matrices of 8-bit integers whose sums are scaled and rounded
// again. An operator of heddle, made by a pass.
#include "kernels/gemm/gemm_matmul.h"
#include "kernels/integers/quantized_ops.h"

namespace heddle {
namespace {

Result<MatmulShapes> QuantizedMatmulShapes(const OpContext& ctx, const Shape& x, const Shape& y) {
  return MatmulShapesOf(x, y, ctx.Bool("trans_x"), ctx.Bool("trans_y"));
}

Status QuantizedMatmulShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &y = ctx.InShape("Y");
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, ResultTypeOf(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckBytesIn(ctx, "X"));
  HEDDLE_RETURN_IF_ERROR(CheckBytesIn(ctx, "Y"));
  if (!x.known_rank() || !y.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, QuantizedMatmulShapes(ctx, x, y));
  for (const Key key : {Key("Factor"), Key("Offset"), Key("YZero")})
    HEDDLE_RETURN_IF_ERROR(CheckPerColumn(ctx, key, s.n));
  ctx.SetOut("Out", s.result, dtype);
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> PrepareQuantizedMatmul(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s,
                          QuantizedMatmulShapes(ctx, ctx.InShape("X"), ctx.InShape("Y")));
  auto state = std::make_unique<QuantizedState>();
  const ConstantOperands constants(ctx, "YZero");
  if (!constants.complete) return std::unique_ptr<KernelState>(std::move(state));
  HEDDLE_ASSIGN_OR_RETURN(
      state->use, UseOf(ctx, constants.factor, constants.offset, constants.y_zero, "x_zero", s.n));
  const BatchedGemm g = PlanOut(s);
  const Tensor* const y = ctx.ConstIn("Y");
  const bool matrix = y != nullptr && y->rank() == 2;
  if (matrix) state->use.MoveZeroIntoOffset(*y, s.trans_y ? 0 : 1);
  HEDDLE_ASSIGN_OR_RETURN(
      state->runner,
      MakeIntegerGemm(&ctx, {g, ctx.InDType("X"), ctx.InDType("Y"), state->use.x_zero != 0,
                             matrix ? y : nullptr, state->use.y_zero, state->use.result}));
  state->facts().implementation = state->runner->name();
  return std::unique_ptr<KernelState>(std::move(state));
}

Status RunQuantizedMatmul(KernelContext& ctx) {
  const auto& state = ctx.State<QuantizedState>();
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  IntegerOperands o{.x = x.raw(), .y = y.raw(), .out = ctx.Out("Out").mutable_raw()};
  if (state.runner != nullptr) {
    state.use.Fill(&o);
    state.runner->Run(ctx, o);
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, QuantizedMatmulShapes(ctx, x.shape(), y.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const QuantizedUse use, UseOf(ctx, &ctx.In("Factor"), ctx.InOpt("Offset"),
                                                        ctx.InOpt("YZero"), "x_zero", s.n));
  const BatchedGemm g = PlanOut(s);
  HEDDLE_ASSIGN_OR_RETURN(const auto runner,
                          MakeIntegerGemm(nullptr, {g, x.dtype(), y.dtype(), use.x_zero != 0,
                                                    nullptr, use.y_zero, use.result}));
  use.Fill(&o);
  runner->Run(ctx, o);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(quantized_matmul) {
  op.Doc(
      "clip(Factor times the product of X - x_zero and Y - YZero, plus Offset), each per column or "
      "one for all, rounded half to even to out_dtype (uint8, int8) or as float32; sums are exact");
  op.Input("X").Input("Y").Input("Factor").Input("Offset", kOptional).Input("YZero", kOptional);
  op.Output("Out").Attr("trans_x", false).Attr("trans_y", false);
  DefineQuantizedResult(op);
  op.Attr("x_zero", 0);
  op.InferShape(QuantizedMatmulShape)
      .Prepare(PrepareQuantizedMatmul)
      .Kernel({DType::kU8, DType::kI8}, RunQuantizedMatmul);
}

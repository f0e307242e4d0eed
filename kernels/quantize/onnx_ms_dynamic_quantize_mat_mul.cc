// Products whose operands are quantised on the way, as ONNX Runtime's optimiser writes them.
#include "kernels/base/check.h"
#include "kernels/quantize/integer_sums.h"

namespace heddle {
namespace {

// Scales or zero points of all columns, or one for all.
Status CheckColumns(const Tensor* t, int64_t n, const char* slot) {
  if (t == nullptr || t->numel() == 1 || t->numel() == n) return Status::Ok();
  return InvalidArgument(slot, " has shape ", t->shape().ToString(), ", expected one or ", n,
                         " elements");
}

Status FloatProductShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"A", "B"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, MatMulShapeOf(ctx.InShape("A"), ctx.InShape("B")));
  ctx.SetOut("Y", s.out, DType::kF32);
  return Status::Ok();
}

constexpr IntegerSlots kSlots{"A", "B", "a_zero_point", "b_zero_point"};
// The zero point of an A that is quantised on the way is no operand.
constexpr IntegerSlots kDynamicSlots{"A", "B", "b_zero_point", "b_zero_point"};

IntegerResult FloatResult(bool offset) {
  IntegerResult result;
  result.dtype = DType::kF32;
  result.offset = offset;
  return result;
}

template <const IntegerSlots& kOperands>
Result<std::unique_ptr<KernelState>> PrepareFloatProduct(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, MatMulShapeOf(ctx.InShape("A"), ctx.InShape("B")));
  return PrepareProductSums(ctx, s, kOperands, FloatResult(ctx.HasIn("bias")));
}

// Calls run(scales, result) with a factor for each column and the bias.
template <typename Fn>
Status WithScales(const KernelContext& ctx, float a_scale, const Fn& run) {
  const Tensor &b = ctx.In("B"), &b_scale = ctx.In("b_scale");
  const Tensor *zero = ctx.InOpt("b_zero_point"), *bias = ctx.InOpt("bias");
  const int64_t n = b.rank() < 2 ? 1 : b.dim(-1);
  HEDDLE_RETURN_IF_ERROR(CheckColumns(&b_scale, n, "b_scale"));
  HEDDLE_RETURN_IF_ERROR(CheckColumns(zero, n, "b_zero_point"));
  HEDDLE_RETURN_IF_ERROR(CheckDType(DType::kF32, {&b_scale, bias}));
  if (zero != nullptr && zero->dtype() != b.dtype())
    return InvalidArgument("b_zero_point is ", Name(zero->dtype()), ", B ", Name(b.dtype()));
  if (bias != nullptr && bias->numel() != n)
    return InvalidArgument("bias has shape ", bias->shape().ToString(), ", expected [", n, "]");
  Tensor factors = ctx.CallScratch(DType::kF32, {n});
  for (int64_t c = 0; c < n; ++c)
    factors.mutable_data<float>()[c] =
        a_scale * b_scale.data<float>()[b_scale.numel() == 1 ? 0 : c];
  IntegerOperands scales;
  scales.factor = factors.data<float>();
  scales.offset = bias != nullptr ? bias->data<float>() : nullptr;
  return run(scales, FloatResult(bias != nullptr));
}

Status DynamicProduct(KernelContext& ctx) {
  const Tensor& a = ctx.In("A");
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, MatMulShapeOf(a.shape(), ctx.In("B").shape()));
  const float* x = a.data<float>();
  const auto steps = RangeSteps<float>::Of(ctx, x, a.numel());
  Tensor bytes = ctx.CallScratch(DType::kU8, a.shape());
  steps.Round(ctx, x, a.numel(), bytes.mutable_data<uint8_t>());
  return WithScales(ctx, steps.scale, [&](const IntegerOperands& scales, const IntegerResult& r) {
    return RunProductOf(ctx, s, bytes.data<uint8_t>(), static_cast<int32_t>(steps.zero),
                        kDynamicSlots, scales, r, ctx.Out("Y").mutable_data<float>());
  });
}

Status IntegerToFloat(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s,
                          MatMulShapeOf(ctx.In("A").shape(), ctx.In("B").shape()));
  HEDDLE_ASSIGN_OR_RETURN(const float scale, OneScale(ctx.In("a_scale"), "a_scale"));
  return WithScales(ctx, scale, [&](const IntegerOperands& scales, const IntegerResult& r) {
    return RunProductSums(ctx, s, kSlots, scales, r, ctx.Out("Y").mutable_data<float>());
  });
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_ms_dynamic_quantize_mat_mul) {
  op.Doc("floats, quantised by their range, times a quantised matrix").Input("A").Input("B");
  op.Input("b_scale").Input("b_zero_point", kOptional).Input("bias", kOptional).Output("Y");
  op.InferShape(FloatProductShape)
      .KernelKey("A")
      .Prepare(PrepareFloatProduct<kDynamicSlots>)
      .Kernel(DType::kF32, DynamicProduct);
}
HEDDLE_OP(onnx_ms_mat_mul_integer_to_float) {
  op.Doc("product of quantised matrices as floats").Input("A").Input("B").Input("a_scale");
  op.Input("b_scale").Input("a_zero_point", kOptional).Input("b_zero_point", kOptional);
  op.Input("bias", kOptional).Output("Y").InferShape(FloatProductShape);
  op.Prepare(PrepareFloatProduct<kSlots>);
  op.KernelKey("A").Kernel({DType::kU8, DType::kI8}, IntegerToFloat);
}

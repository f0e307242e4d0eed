// Products whose operands are quantised on the way, as ONNX Runtime's optimiser writes them.
#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/products/matmul_shape.h"
#include "kernels/quantize/quantized.h"

namespace heddle {
namespace {

// Scales or zero points of all columns, or one for all.
Status CheckColumns(const Tensor* t, int64_t n, const char* slot) {
  if (t == nullptr || t->numel() == 1 || t->numel() == n) return Status::Ok();
  return InvalidArgument(slot, " has shape ", t->shape().ToString(), ", expected one or ", n,
                         " elements");
}

// to = b minus the zero point of its column.
Status CenterColumns(const Tensor& b, const Tensor* zero, int64_t n, int32_t* to) {
  if (zero != nullptr && zero->dtype() != b.dtype())
    return InvalidArgument("b_zero_point is ", Name(zero->dtype()), ", B ", Name(b.dtype()));
  const bool known = VisitDType<uint8_t, int8_t>(b.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* v = b.data<T>();
    for (const auto part : Stretches(b.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = int32_t{v[i]} -
                (zero == nullptr ? 0 : int32_t{zero->data<T>()[zero->numel() == 1 ? 0 : i % n]});
  });
  return known ? Status::Ok() : InvalidArgument("B is ", Name(b.dtype()));
}

Status FloatProductShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"A", "B"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, MatMulShapeOf(ctx.InShape("A"), ctx.InShape("B")));
  ctx.SetOut("Y", s.out, DType::kF32);
  return Status::Ok();
}

// Y = sums of integers times the scales, plus the bias of columns.
Status ScaleProduct(KernelContext& ctx, const MatMulShape& s, const int32_t* a, float a_scale) {
  const Tensor &b = ctx.In("B"), &b_scale = ctx.In("b_scale");
  const Tensor *zero = ctx.InOpt("b_zero_point"), *bias = ctx.InOpt("bias");
  const int64_t n = b.rank() == 0 ? 1 : b.dim(-1);
  HEDDLE_RETURN_IF_ERROR(CheckColumns(&b_scale, n, "b_scale"));
  HEDDLE_RETURN_IF_ERROR(CheckColumns(zero, n, "b_zero_point"));
  HEDDLE_RETURN_IF_ERROR(CheckDType(DType::kF32, {&b_scale, bias}));
  if (bias != nullptr && bias->numel() != n)
    return InvalidArgument("bias has shape ", bias->shape().ToString(), ", expected [", n, "]");
  Tensor wide = ctx.Scratch(DType::kI32, b.shape()), sums = ctx.Scratch(DType::kI32, s.out);
  HEDDLE_RETURN_IF_ERROR(CenterColumns(b, zero, n, wide.mutable_data<int32_t>()));
  int32_t* acc = sums.mutable_data<int32_t>();
  s.Run<int32_t>(ctx, a, wide.data<int32_t>(), acc);
  float* to = ctx.Out("Y").mutable_data<float>();
  for (const int64_t i : Watched(s.out.numel())) {
    const int64_t c = i % n;
    to[i] = static_cast<float>(acc[i]) *
            (a_scale * b_scale.data<float>()[b_scale.numel() == 1 ? 0 : c]);
    if (bias != nullptr) to[i] += bias->data<float>()[c];
  }
  return Status::Ok();
}

Status DynamicProduct(KernelContext& ctx) {
  const Tensor& a = ctx.In("A");
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, MatMulShapeOf(a.shape(), ctx.In("B").shape()));
  const float* x = a.data<float>();
  const RangeSteps<float> steps(x, a.numel());
  Tensor centered = ctx.Scratch(DType::kI32, a.shape());
  int32_t* to = centered.mutable_data<int32_t>();
  for (const auto part : Stretches(a.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      to[i] = static_cast<int32_t>(steps.StepOf(x[i]) - steps.zero);
  return ScaleProduct(ctx, s, to, steps.scale);
}

Status IntegerToFloat(KernelContext& ctx) {
  const Tensor& a = ctx.In("A");
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, MatMulShapeOf(a.shape(), ctx.In("B").shape()));
  HEDDLE_ASSIGN_OR_RETURN(const float scale, OneScale(ctx.In("a_scale"), "a_scale"));
  Tensor centered = ctx.Scratch(DType::kI32, a.shape());
  HEDDLE_RETURN_IF_ERROR(
      Centered(a, ctx.InOpt("a_zero_point"), 1, "a_zero_point", centered.mutable_data<int32_t>()));
  return ScaleProduct(ctx, s, centered.data<int32_t>(), scale);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_ms_dynamic_quantize_mat_mul) {
  op.Doc("floats, quantised by their range, times a quantised matrix").Input("A").Input("B");
  op.Input("b_scale").Input("b_zero_point", kOptional).Input("bias", kOptional).Output("Y");
  op.InferShape(FloatProductShape).KernelKey("A").Kernel(DType::kF32, DynamicProduct);
}
HEDDLE_OP(onnx_ms_mat_mul_integer_to_float) {
  op.Doc("product of quantised matrices as floats").Input("A").Input("B").Input("a_scale");
  op.Input("b_scale").Input("a_zero_point", kOptional).Input("b_zero_point", kOptional);
  op.Input("bias", kOptional).Output("Y").InferShape(FloatProductShape);
  op.KernelKey("A").Kernel({DType::kU8, DType::kI8}, IntegerToFloat);
}

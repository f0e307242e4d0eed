// Products of matrices of 8-bit integers, by NumPy's rules for batches and vectors.
#include "kernels/base/call_heap.h"
#include "kernels/base/visit_one_of.h"
#include "kernels/quantize/integer_sums.h"

namespace heddle {
namespace {

constexpr IntegerSlots kPlain{"A", "B", "a_zero_point", "b_zero_point"};
constexpr IntegerSlots kLinear{"a", "b", "a_zero_point", "b_zero_point"};

Status OnnxMatMulIntegerShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"A", "B"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, MatMulShapeOf(ctx.InShape("A"), ctx.InShape("B")));
  ctx.SetOut("Y", s.out, DType::kI32);
  return Status::Ok();
}
Result<std::unique_ptr<KernelState>> PrepareIntegers(PrepareContext& ctx,
                                                     const IntegerSlots& slots) {
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape shape,
                          MatMulShapeOf(ctx.InShape(slots.x), ctx.InShape(slots.y)));
  return PrepareProductSums(ctx, shape, slots);
}
Status MultiplyIntegers(const KernelContext& ctx, const IntegerSlots& slots, int32_t* to) {
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape shape,
                          MatMulShapeOf(ctx.In(slots.x).shape(), ctx.In(slots.y).shape()));
  return RunProductSums(ctx, shape, slots, {}, {}, to);
}
Status OnnxMatMulInteger(KernelContext& ctx) {
  return MultiplyIntegers(ctx, kPlain, ctx.Out("Y").mutable_data<int32_t>());
}

Status OnnxQLinearMatMulShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"a", "b"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, MatMulShapeOf(ctx.InShape("a"), ctx.InShape("b")));
  ctx.SetOut("y", s.out, ctx.InDType("y_zero_point"));
  return Status::Ok();
}

Result<float> ScaleAt(const Tensor& t, int64_t i) {
  if (!IsFloat(t.dtype())) return InvalidArgument("a scale is ", Name(t.dtype()));
  float value = 0;
  VisitOneOf<float, double, float16, bfloat16>("a scale", t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    value = static_cast<float>(static_cast<ComputeType<T>>(t.data<T>()[i]));
  });
  return value;
}

Status OnnxQLinearMatMul(KernelContext& ctx) {
  Tensor& out = ctx.Out("y");
  Tensor sums = ctx.Scratch(DType::kI32, out.shape());
  HEDDLE_RETURN_IF_ERROR(MultiplyIntegers(ctx, kLinear, sums.mutable_data<int32_t>()));
  const Tensor &a_scale = ctx.In("a_scale"), &b_scale = ctx.In("b_scale");
  HEDDLE_ASSIGN_OR_RETURN(const int32_t zero, OneZero(ctx.In("y_zero_point"), "y_zero_point"));
  if (ctx.In("y_scale").numel() != 1) return InvalidArgument("y_scale must hold one element");
  HEDDLE_ASSIGN_OR_RETURN(const float y_scale, ScaleAt(ctx.In("y_scale"), 0));
  const int64_t cols = out.rank() == 0 ? 1 : out.dim(-1), rows = out.rank() < 2 ? 1 : out.dim(-2);
  if ((a_scale.numel() != 1 && a_scale.numel() != rows) ||
      (b_scale.numel() != 1 && b_scale.numel() != cols))
    return InvalidArgument("a_scale ", a_scale.shape().ToString(), " and b_scale ",
                           b_scale.shape().ToString(), " do not fit the result ",
                           out.shape().ToString());
  CallHeap heap(ctx);
  std::pmr::vector<float> a(static_cast<size_t>(a_scale.numel()), &heap);
  std::pmr::vector<float> b(static_cast<size_t>(b_scale.numel()), &heap);
  for (size_t i = 0; i < a.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(a[i], ScaleAt(a_scale, static_cast<int64_t>(i)));
  }
  for (size_t i = 0; i < b.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(b[i], ScaleAt(b_scale, static_cast<int64_t>(i)));
  }
  if (b.size() == 1) b.assign(static_cast<size_t>(cols), float{b[0]});
  const auto scale_of = [&](int64_t row) {
    const float by = a[a.size() == 1 ? 0 : static_cast<size_t>(row % rows)];
    return [by, y_scale, each = b.data()](int64_t col) { return by * each[col] / y_scale; };
  };
  return Requantize(ctx, sums.data<int32_t>(), cols == 0 ? 0 : out.numel() / cols, cols, zero,
                    scale_of, &out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_mat_mul_integer) {
  op.Doc("products of matrices of 8-bit integers, in int32").Input("A").Input("B");
  op.Input("a_zero_point", kOptional).Input("b_zero_point", kOptional).Output("Y");
  op.InferShape(OnnxMatMulIntegerShape).Prepare([](PrepareContext& ctx) {
    return PrepareIntegers(ctx, kPlain);
  });
  op.Kernel({DType::kU8, DType::kI8}, OnnxMatMulInteger);
}
HEDDLE_OP(onnx_q_linear_mat_mul) {
  op.Doc("products of matrices of 8-bit integers with scales, rounded to 8 bits");
  op.Input("a").Input("a_scale").Input("a_zero_point").Input("b").Input("b_scale");
  op.Input("b_zero_point").Input("y_scale").Input("y_zero_point").Output("y");
  op.InferShape(OnnxQLinearMatMulShape).Prepare([](PrepareContext& ctx) {
    return PrepareIntegers(ctx, kLinear);
  });
  op.Kernel({DType::kU8, DType::kI8}, OnnxQLinearMatMul);
}

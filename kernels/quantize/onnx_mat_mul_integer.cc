// Products of matrices of 8-bit integers, by NumPy's rules for batches and vectors.
#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/visit_one_of.h"
#include "kernels/products/matmul_shape.h"
#include "kernels/quantize/quantized.h"

namespace heddle {
namespace {

// Subtracts a zero point that is one number, one per row of the last two dimensions (`rows`), or
// one per column.
Status Center(const Tensor& from, const Tensor* zero, bool rows, const char* slot, int32_t* to) {
  if (from.dtype() != DType::kU8 && from.dtype() != DType::kI8)
    return InvalidArgument("an operand is ", Name(from.dtype()), ", expected uint8 or int8");
  const int64_t cols = from.rank() == 0 ? 1 : from.dim(-1);
  const int64_t height = from.rank() < 2 ? 1 : from.dim(-2);
  const int64_t zeros = zero == nullptr ? 1 : zero->numel();
  const int64_t batches = from.rank() < 2 ? 1 : from.shape().Product(0, from.rank() - 2);
  const bool per_batch = zeros != 1 && zeros == batches * (rows ? height : cols);
  if (zero != nullptr && (zero->dtype() != from.dtype() ||
                          (zeros != 1 && zeros != (rows ? height : cols) && !per_batch)))
    return InvalidArgument(slot, " is ", Name(zero->dtype()), " ", zero->shape().ToString(),
                           ", which does not fit ", from.shape().ToString());
  VisitOneOf<uint8_t, int8_t>(slot, from.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* v = from.data<T>();
    for (const auto part : Stretches(from.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t batch = per_batch ? i / cols / height : 0;
        const int64_t own = rows ? i / cols % height : i % cols;
        const int64_t at = zeros == 1 ? 0 : batch * (rows ? height : cols) + own;
        to[i] = int32_t{v[i]} - (zero == nullptr ? 0 : int32_t{zero->data<T>()[at]});
      }
  });
  return Status::Ok();
}

struct Slots {
  Key a, b, a_zero, b_zero;
};

Status MultiplyIntegers(const KernelContext& ctx, const Slots& s, int32_t* to) {
  const Tensor &a = ctx.In(s.a), &b = ctx.In(s.b);
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape shape, MatMulShapeOf(a.shape(), b.shape()));
  Tensor wide_a = ctx.Scratch(DType::kI32, a.shape()), wide_b = ctx.Scratch(DType::kI32, b.shape());
  HEDDLE_RETURN_IF_ERROR(
      Center(a, ctx.InOpt(s.a_zero), true, s.a_zero.name, wide_a.mutable_data<int32_t>()));
  HEDDLE_RETURN_IF_ERROR(
      Center(b, ctx.InOpt(s.b_zero), false, s.b_zero.name, wide_b.mutable_data<int32_t>()));
  shape.Run<int32_t>(ctx, wide_a.data<int32_t>(), wide_b.data<int32_t>(), to);
  return Status::Ok();
}

constexpr Slots kPlain{"A", "B", "a_zero_point", "b_zero_point"};
constexpr Slots kLinear{"a", "b", "a_zero_point", "b_zero_point"};

Status OnnxMatMulIntegerShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"A", "B"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, MatMulShapeOf(ctx.InShape("A"), ctx.InShape("B")));
  ctx.SetOut("Y", s.out, DType::kI32);
  return Status::Ok();
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
  return Requantize(
      sums.data<int32_t>(), out.numel(), zero,
      [&](int64_t i) {
        const size_t row = a.size() == 1 ? 0 : static_cast<size_t>(i / cols % rows);
        const size_t col = b.size() == 1 ? 0 : static_cast<size_t>(i % cols);
        return a[row] * b[col] / y_scale;
      },
      &out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_mat_mul_integer) {
  op.Doc("products of matrices of 8-bit integers, in int32").Input("A").Input("B");
  op.Input("a_zero_point", kOptional).Input("b_zero_point", kOptional).Output("Y");
  op.InferShape(OnnxMatMulIntegerShape).Kernel({DType::kU8, DType::kI8}, OnnxMatMulInteger);
}
HEDDLE_OP(onnx_q_linear_mat_mul) {
  op.Doc("products of matrices of 8-bit integers with scales, rounded to 8 bits");
  op.Input("a").Input("a_scale").Input("a_zero_point").Input("b").Input("b_scale");
  op.Input("b_zero_point").Input("y_scale").Input("y_zero_point").Output("y");
  op.InferShape(OnnxQLinearMatMulShape).Kernel({DType::kU8, DType::kI8}, OnnxQLinearMatMul);
}

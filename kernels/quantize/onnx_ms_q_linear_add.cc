// Operations on quantised tensors that compute in float. ONNX Runtime's optimiser makes them from
// operations between dequantised operands.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/operands/broadcast_rows.h"
#include "kernels/quantize/byte_loops.h"
#include "kernels/quantize/integer_sums.h"

namespace heddle {
namespace {

// A scale and a zero point, of one number each.
struct Affine {
  float scale = 1;
  int32_t zero = 0;

  template <typename T>
  float Of(T q) const {
    return static_cast<float>(int32_t{q} - zero) * scale;
  }
  template <typename T>
  T To(float x) const {
    return RoundTo<T>(x / scale, zero);
  }
};

Result<Affine> AffineIn(const KernelContext& ctx, Key scale, Key zero, int i = 0) {
  Affine a;
  HEDDLE_ASSIGN_OR_RETURN(a.scale, OneScale(ctx.In(scale, i), scale.name));
  if (const Tensor* t = ctx.InOpt(zero, i)) {
    HEDDLE_ASSIGN_OR_RETURN(a.zero, OneZero(*t, zero.name));
  }
  return a;
}

Status CheckSameType(const ShapeContext& ctx, Key a, Key b) {
  if (ctx.InDType(a) == ctx.InDType(b)) return Status::Ok();
  return InvalidArgument(b.name, " is ", Name(ctx.InDType(b)), ", ", a.name, " ",
                         Name(ctx.InDType(a)), ", expected one dtype");
}

template <typename F, typename T>
Status RunQuantizedPair(KernelContext& ctx) {
  const Tensor &a = ctx.In("A"), &b = ctx.In("B");
  HEDDLE_ASSIGN_OR_RETURN(const Affine x, AffineIn(ctx, "A_scale", "A_zero_point"));
  HEDDLE_ASSIGN_OR_RETURN(const Affine y, AffineIn(ctx, "B_scale", "B_zero_point"));
  HEDDLE_ASSIGN_OR_RETURN(const Affine z, AffineIn(ctx, "C_scale", "C_zero_point"));
  HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(a.shape(), b.shape(), -1));
  ForEachPair(ctx, plan, a.data<T>(), b.data<T>(), ctx.Out("C").mutable_data<T>(),
              [&](T p, T q) { return z.To<T>(F()(x.Of(p), y.Of(q))); });
  return Status::Ok();
}

template <typename F>
void DefineQuantizedPair(OpDef& op, const char* doc) {
  op.Doc(doc).Input("A").Input("A_scale").Input("A_zero_point", kOptional);
  op.Input("B").Input("B_scale").Input("B_zero_point", kOptional);
  op.Input("C_scale").Input("C_zero_point", kOptional).Output("C");
  op.InferShape([](ShapeContext& ctx) {
    HEDDLE_RETURN_IF_ERROR(CheckSameType(ctx, "A", "B"));
    return BroadcastPair(ctx, "A", "B", "C");
  });
  op.Kernel(DType::kU8, &RunQuantizedPair<F, uint8_t>);
  op.Kernel(DType::kI8, &RunQuantizedPair<F, int8_t>);
}

Status QuantizedLikeX(ShapeContext& ctx) {
  ctx.SetOut("Y", ctx.InShape("X"), ctx.InDType("X"));
  return Status::Ok();
}

// Every value that 8 bits can hold has one result.
template <typename T, typename F>
Status RunQuantizedTable(KernelContext& ctx, const F& f) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const Affine in, AffineIn(ctx, "X_scale", "X_zero_point"));
  HEDDLE_ASSIGN_OR_RETURN(const Affine out, AffineIn(ctx, "Y_scale", "Y_zero_point"));
  std::array<T, 256> table;
  for (int i = 0; i < 256; ++i)
    table[static_cast<size_t>(i)] = out.To<T>(f(in.Of(static_cast<T>(static_cast<uint8_t>(i)))));
  const T* from = x.data<T>();
  T* to = ctx.Out("Y").mutable_data<T>();
  LookUpBytes(ctx, from, x.numel(), table.data(), to);
  return Status::Ok();
}

template <typename T>
struct QuantizedSigmoid {
  static Status Run(KernelContext& ctx) {
    return RunQuantizedTable<T>(ctx, [](float x) { return 1 / (1 + std::exp(-x)); });
  }
};
template <typename T>
struct QuantizedLeakyRelu {
  static Status Run(KernelContext& ctx) {
    const auto alpha = static_cast<float>(ctx.Float("alpha"));
    return RunQuantizedTable<T>(ctx, [alpha](float x) { return x >= 0 ? x : alpha * x; });
  }
};

void QuantizedUnary(OpDef& op, const char* doc) {
  op.Doc(doc).Input("X").Input("X_scale").Input("X_zero_point", kOptional);
  op.Input("Y_scale").Input("Y_zero_point", kOptional).Output("Y").InferShape(QuantizedLikeX);
}

Status QuantizedPoolShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  if (!out.known_rank()) return ctx.Defer();
  if (out.rank() < 3) return InvalidArgument("X has shape ", out.ToString(), ", expected images");
  const bool last = ctx.Int("channels_last") != 0;
  for (int i = last ? 1 : 2; i < out.rank() - (last ? 1 : 0); ++i) out[i] = 1;
  ctx.SetOut("Y", out, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct QuantizedGlobalPool {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Affine in, AffineIn(ctx, "x_scale", "x_zero_point"));
    HEDDLE_ASSIGN_OR_RETURN(const Affine out, AffineIn(ctx, "y_scale", "y_zero_point"));
    const bool last = ctx.Int("channels_last") != 0;
    const int64_t channels = x.dim(last ? -1 : 1);
    const int64_t size = last ? x.shape().Product(1, x.rank() - 1) : x.shape().Product(2, x.rank());
    const T* from = x.data<T>();
    T* to = ctx.Out("Y").template mutable_data<T>();
    for (const int64_t i : Watched(x.dim(0) * channels)) {
      int64_t sum = 0;
      for (int64_t k = 0; k < size; ++k)
        sum += from[last ? (i / channels * size + k) * channels + i % channels : i * size + k];
      const float mean = static_cast<float>(sum - size * in.zero) / static_cast<float>(size);
      to[i] = out.template To<T>(mean * in.scale);
    }
    return Status::Ok();
  }
};

// Operand i of a concatenation is three inputs: the tensor, its scale and its zero point.
Status QuantizedConcatShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"inputs"})) return ctx.Defer();
  const int count = ctx.InCount("inputs");
  if (count == 0 || count % 3 != 0)
    return InvalidArgument("has ", count, " inputs, expected three for each operand");
  Shape out = ctx.InShape("inputs");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), out.rank()));
  for (int i = 3; i < count; i += 3) {
    const Shape& x = ctx.InShape("inputs", i);
    bool fits = x.rank() == out.rank() && x.rank() > 0;
    for (int k = 0; fits && k < x.rank(); ++k) fits = k == axis || x[k] == out[k];
    if (!fits || ctx.InDType("inputs", i) != ctx.InDType("inputs"))
      return InvalidArgument("operand ", i / 3, " of shape ", x.ToString(),
                             " does not fit the first one");
    out[axis] += x[axis];
  }
  ctx.SetOut("Y", out, ctx.InDType("inputs"));
  return Status::Ok();
}

template <typename T>
struct QuantizedConcat {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Affine z, AffineIn(ctx, "Y_scale", "Y_zero_point"));
    Tensor& out = ctx.Out("Y");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(out.shape(), ctx.Int("axis")));
    T* to = out.template mutable_data<T>();
    int64_t at = 0;
    for (int i = 0; i < ctx.InCount("inputs"); i += 3) {
      const Tensor& x = ctx.In("inputs", i);
      Affine a;
      HEDDLE_ASSIGN_OR_RETURN(a.scale, OneScale(ctx.In("inputs", i + 1), "an operand's scale"));
      HEDDLE_ASSIGN_OR_RETURN(a.zero, OneZero(ctx.In("inputs", i + 2), "an operand's zero point"));
      const int64_t row = lines.outer == 0 ? 0 : x.numel() / lines.outer;
      const T* from = x.data<T>();
      for (const int64_t o : Watched(lines.outer))
        for (int64_t k = 0; k < row; ++k)
          to[o * lines.n * lines.inner + at + k] = z.template To<T>(a.Of(from[o * row + k]));
      at += row;
    }
    return Status::Ok();
  }
};

template <typename Context>
Result<MatMulShape> QuantizedGemmOf(const Context& ctx) {
  const Shape &a = ShapeIn(ctx, "A"), &b = ShapeIn(ctx, "B");
  if (a.rank() != 2 || b.rank() != 2)
    return InvalidArgument("A ", a.ToString(), " and B ", b.ToString(), " must be matrices");
  return MatMulShapeOf(a, b, ctx.Int("transA") != 0, ctx.Int("transB") != 0);
}

Status QuantizedGemmShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"A", "B"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, QuantizedGemmOf(ctx));
  const bool whole = ctx.HasIn("y_scale");
  ctx.SetOut("Y", s.out,
             !whole                      ? DType::kF32
             : ctx.HasIn("y_zero_point") ? ctx.InDType("y_zero_point")
                                         : ctx.InDType("A"));
  return Status::Ok();
}

constexpr IntegerSlots kGemmSlots{"A", "B", "a_zero_point", "b_zero_point"};

Result<std::unique_ptr<KernelState>> PrepareQuantizedGemm(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, QuantizedGemmOf(ctx));
  return PrepareProductSums(ctx, s, kGemmSlots);
}

Status QuantizedGemm(KernelContext& ctx) {
  const Tensor& b_scale = ctx.In("b_scale");
  Tensor& out = ctx.Out("Y");
  HEDDLE_ASSIGN_OR_RETURN(const MatMulShape s, QuantizedGemmOf(ctx));
  const int64_t n = s.out[1];
  if (b_scale.dtype() != DType::kF32 || (b_scale.numel() != 1 && b_scale.numel() != n))
    return InvalidArgument("b_scale is ", Name(b_scale.dtype()), " ", b_scale.shape().ToString());
  const int64_t zeros = ctx.In("b_zero_point").numel();
  if (zeros != 1 && zeros != n)
    return InvalidArgument("b_zero_point has ", zeros, " elements, expected 1 or ", n);
  if (zeros != 1 && ctx.Int("transB") != 0 && ctx.State<IntegerSumsState>().runner == nullptr)
    return Unimplemented("zero points of columns of a transposed B that are no constants");
  Tensor sums = ctx.Scratch(DType::kI32, s.out);
  int32_t* acc = sums.mutable_data<int32_t>();
  HEDDLE_RETURN_IF_ERROR(RunProductSums(ctx, s, kGemmSlots, {}, {}, acc));
  if (const Tensor* c = ctx.InOpt("C")) {
    if (c->dtype() != DType::kI32) return InvalidArgument("C is ", Name(c->dtype()));
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan, MakeBroadcastPlan(s.out, c->shape(), -1));
    if (plan.numel != s.out.numel()) return InvalidArgument("C does not broadcast to the product");
    ForEachPair(ctx, plan, acc, c->data<int32_t>(), acc,
                [](int32_t p, int32_t q) { return p + q; });
  }
  HEDDLE_ASSIGN_OR_RETURN(const float a_scale, OneScale(ctx.In("a_scale"), "a_scale"));
  const auto alpha = static_cast<float>(ctx.Float("alpha"));
  const float* const scales = b_scale.data<float>();
  const bool one = b_scale.numel() == 1;
  const auto scale_of = [by = alpha * a_scale, scales, one](int64_t c) {
    return by * scales[one ? 0 : c];
  };
  if (out.dtype() == DType::kF32) {
    float* const to = out.mutable_data<float>();
    for (const int64_t r : Watched(s.out[0]))
      for (int64_t c = 0; c < n; ++c)
        to[r * n + c] = static_cast<float>(acc[r * n + c]) * scale_of(c);
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const Affine z, AffineIn(ctx, "y_scale", "y_zero_point"));
  const auto row_scale = [&](int64_t) {
    return [scale_of, whole = z.scale](int64_t c) { return scale_of(c) / whole; };
  };
  return Requantize(ctx, acc, s.out[0], n, z.zero, row_scale, &out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_ms_q_linear_add) {
  DefineQuantizedPair<std::plus<float>>(op, "sums of quantised tensors");
}
HEDDLE_OP(onnx_ms_q_linear_mul) {
  DefineQuantizedPair<std::multiplies<float>>(op, "products of quantised tensors");
}
HEDDLE_OP(onnx_ms_q_linear_sigmoid) {
  QuantizedUnary(op, "sigmoid of a quantised tensor");
  op.Kernels<QuantizedSigmoid, uint8_t, int8_t>();
}
HEDDLE_OP(onnx_ms_q_linear_leaky_relu) {
  QuantizedUnary(op, "leaky rectifier of a quantised tensor");
  op.Attr("alpha", 0.01).Kernels<QuantizedLeakyRelu, uint8_t, int8_t>();
}
HEDDLE_OP(onnx_ms_q_linear_global_average_pool) {
  op.Doc("means of the planes of a quantised tensor").Input("X").Input("x_scale");
  op.Input("x_zero_point").Input("y_scale").Input("y_zero_point").Output("Y");
  op.Attr("channels_last", 0).InferShape(QuantizedPoolShape);
  op.Kernels<QuantizedGlobalPool, uint8_t, int8_t>();
}
HEDDLE_OP(onnx_ms_q_linear_concat) {
  op.Doc("quantised tensors, each followed by its scale and zero point, joined along an axis");
  op.Input("Y_scale").Input("Y_zero_point").Input("inputs", kList).Output("Y").Attr("axis", 0);
  op.InferShape(QuantizedConcatShape).KernelKey("inputs");
  op.Kernels<QuantizedConcat, uint8_t, int8_t>();
}
HEDDLE_OP(onnx_ms_q_gemm) {
  op.Doc("product of quantised matrices with an int32 addend, quantised again or as floats");
  op.Input("A").Input("a_scale").Input("a_zero_point").Input("B").Input("b_scale");
  op.Input("b_zero_point").Input("C", kOptional).Input("y_scale", kOptional);
  op.Input("y_zero_point", kOptional).Output("Y").Attr("alpha", 1.0).Attr("transA", 0);
  op.Attr("transB", 0).InferShape(QuantizedGemmShape).Prepare(PrepareQuantizedGemm);
  op.Kernel({DType::kU8, DType::kI8}, QuantizedGemm);
}

// Products whose operands are quantised on the way, and other fused operators that ONNX Runtime's
// optimiser writes.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/check.h"
#include "kernels/onnx/broadcast_rows.h"
#include "kernels/onnx_nn/matmul_shape.h"
#include "kernels/onnx_nn/quantized.h"
#include "kernels/onnx_nn/recurrent.h"

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

Status SkipNormShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"input", "skip", "gamma", "beta", "bias"})) return ctx.Defer();
  const Shape& x = ctx.InShape("input");
  if (x.rank() < 2) return InvalidArgument("input has shape ", x.ToString());
  HEDDLE_ASSIGN_OR_RETURN(const Shape both, BroadcastShape(x, ctx.InShape("skip"), -1));
  bool good = both == x;
  for (const Key& key : {Key("gamma"), Key("beta"), Key("bias")})
    good = good && (!ctx.HasIn(key) || ctx.InShape(key).numel() == x.dim(-1));
  if (!good) return InvalidArgument("skip, gamma, beta or bias does not fit input ", x.ToString());
  ctx.SetOut("output", x, ctx.InDType("input"));
  Shape rows = x;
  rows[rows.rank() - 1] = 1;
  if (ctx.HasOut("mean")) ctx.SetOut("mean", rows, DType::kF32);
  if (ctx.HasOut("inv_std_var")) ctx.SetOut("inv_std_var", rows, DType::kF32);
  if (ctx.HasOut("input_skip_bias_sum")) ctx.SetOut("input_skip_bias_sum", x, ctx.InDType("input"));
  return Status::Ok();
}

template <typename T>
struct SkipNorm {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("input"), &skip = ctx.In("skip"), &gamma = ctx.In("gamma");
    const Tensor *beta = ctx.InOpt("beta"), *bias = ctx.InOpt("bias");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&skip, &gamma, beta, bias}));
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                            MakeBroadcastPlan(x.shape(), skip.shape(), -1));
    Tensor* kept = ctx.OutOpt("input_skip_bias_sum");
    Tensor own;
    if (kept == nullptr) own = ctx.Scratch(kDTypeOf<T>, x.shape());
    T* sum = (kept == nullptr ? own : *kept).template mutable_data<T>();
    ForEachPair(ctx, plan, x.data<T>(), skip.data<T>(), sum, [](T a, T b) { return a + b; });
    const int64_t n = x.dim(-1), rows = n == 0 ? 0 : x.numel() / n;
    Tensor *mean_out = ctx.OutOpt("mean"), *factor_out = ctx.OutOpt("inv_std_var");
    T* to = ctx.Out("output").template mutable_data<T>();
    for (const int64_t r : Watched(rows)) {
      T* row = sum + r * n;
      double mean = 0, square = 0;
      for (int64_t i = 0; i < n; ++i) {
        if (bias != nullptr) row[i] += bias->data<T>()[i];
        mean += static_cast<double>(row[i]) / static_cast<double>(n);
      }
      for (int64_t i = 0; i < n; ++i) {
        const double d = static_cast<double>(row[i]) - mean;
        square += d * d / static_cast<double>(n);
      }
      const double factor = 1 / std::sqrt(square + ctx.Float("epsilon"));
      if (mean_out != nullptr) mean_out->mutable_data<float>()[r] = static_cast<float>(mean);
      if (factor_out != nullptr) factor_out->mutable_data<float>()[r] = static_cast<float>(factor);
      for (int64_t i = 0; i < n; ++i) {
        const T v =
            static_cast<T>((static_cast<double>(row[i]) - mean) * factor) * gamma.data<T>()[i];
        to[r * n + i] = beta == nullptr ? v : v + beta->data<T>()[i];
      }
    }
    return Status::Ok();
  }
};

Status GeluShape(ShapeContext& ctx, Key x, Key out) {
  ctx.SetOut(out, ctx.InShape(x), ctx.InDType(x));
  return Status::Ok();
}

// The bias of the last dimension, or none.
template <typename T, typename F>
Status RunBiased(KernelContext& ctx, Key in, Key bias_key, Key out, const F& f) {
  const Tensor& x = ctx.In(in);
  const Tensor* bias = ctx.InOpt(bias_key);
  HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {bias}));
  const int64_t n = x.rank() == 0 ? 1 : x.dim(-1);
  if (bias != nullptr && bias->numel() != n)
    return InvalidArgument(bias_key.name, " has shape ", bias->shape().ToString(), ", expected [",
                           n, "]");
  const T* from = x.data<T>();
  T* to = ctx.Out(out).template mutable_data<T>();
  for (const auto part : Stretches(x.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      to[i] = f(bias == nullptr ? from[i] : from[i] + bias->data<T>()[i % n]);
  return Status::Ok();
}

template <typename T>
struct FastGelu {
  static Status Run(KernelContext& ctx) {
    return RunBiased<T>(ctx, "X", "bias", "Y", [](T x) {
      return T(0.5) * x * (T(1) + std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)));
    });
  }
};
template <typename T>
struct BiasGelu {
  static Status Run(KernelContext& ctx) {
    return RunBiased<T>(ctx, "A", "B", "C", [](T x) {
      return T(0.5) * x * (T(1) + std::erf(x * T(0.7071067811865476)));
    });
  }
};

// --- DynamicQuantizeLSTM

// Weights of a direction and their scales: one, or one for each column.
Status Dequantize(const KernelContext& ctx, Key weights, Key scale_key, Key zero_key,
                  int64_t directions, int64_t columns, std::pmr::vector<float>* to) {
  const Tensor &w = ctx.In(weights), &scale = ctx.In(scale_key), &zero = ctx.In(zero_key);
  const bool per_column = scale.numel() == directions * columns;
  if (scale.dtype() != DType::kF32 || zero.dtype() != w.dtype() ||
      (!per_column && scale.numel() != directions) || zero.numel() != scale.numel())
    return InvalidArgument(scale_key.name, " ", scale.shape().ToString(), " and ", zero_key.name,
                           " ", zero.shape().ToString(), " do not fit ", weights.name, " ",
                           w.shape().ToString());
  to->resize(static_cast<size_t>(w.numel()));
  const int64_t each = w.numel() / directions;
  const bool known = VisitDType<uint8_t, int8_t>(w.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const auto part : Stretches(w.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t at = per_column ? i / each * columns + i % columns : i / each;
        (*to)[static_cast<size_t>(i)] =
            static_cast<float>(int32_t{w.data<T>()[i]} - int32_t{zero.data<T>()[at]}) *
            scale.data<float>()[at];
      }
  });
  return known ? Status::Ok() : InvalidArgument(weights.name, " is ", Name(w.dtype()));
}

Status DynamicLstm(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const RecurrentConfig config,
                          RecurrentConfigOf(ctx, RecurrentKind::kLstm, true));
  HEDDLE_RETURN_IF_ERROR(CheckDType(DType::kF32, {ctx.InOpt("B"), ctx.InOpt("initial_h"),
                                                  ctx.InOpt("initial_c"), ctx.InOpt("P")}));
  const int64_t columns = 4 * config.hidden;
  CallHeap heap(ctx);
  std::pmr::vector<float> w(&heap), r(&heap);
  if (columns > 0) {
    HEDDLE_RETURN_IF_ERROR(
        Dequantize(ctx, "W", "W_scale", "W_zero_point", config.directions, columns, &w));
    HEDDLE_RETURN_IF_ERROR(
        Dequantize(ctx, "R", "R_scale", "R_zero_point", config.directions, columns, &r));
  }
  return RunRecurrent<float>(ctx, config,
                             {.w = w.data(), .r = r.data(), .transposed = true, .quantize = true});
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
HEDDLE_OP(onnx_ms_skip_layer_normalization) {
  op.Doc("input plus skip plus bias, rows to mean 0 and variance 1, scaled and shifted");
  op.Input("input").Input("skip").Input("gamma").Input("beta", kOptional);
  op.Input("bias", kOptional).Output("output").Output("mean", kOptional);
  op.Output("inv_std_var", kOptional).Output("input_skip_bias_sum", kOptional);
  op.Attr("epsilon", 1e-12).InferShape(SkipNormShape).Kernels<SkipNorm, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_ms_fast_gelu) {
  op.Doc("gelu by tanh of X plus a bias of the last dimension").Input("X");
  op.Input("bias", kOptional).Output("Y");
  op.InferShape([](ShapeContext& ctx) { return GeluShape(ctx, "X", "Y"); });
  op.Kernels<FastGelu, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_ms_bias_gelu) {
  op.Doc("gelu of A plus a bias of the last dimension").Input("A").Input("B").Output("C");
  op.InferShape([](ShapeContext& ctx) { return GeluShape(ctx, "A", "C"); });
  op.Kernels<BiasGelu, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_ms_dynamic_quantize_lstm) {
  op.Doc(
      "LSTM with quantised, transposed weights; inputs and states are quantised before each "
      "product");
  DeclareRecurrent(op, RecurrentKind::kLstm);
  op.Input("W_scale").Input("W_zero_point").Input("R_scale").Input("R_zero_point");
  op.InferShape([](ShapeContext& ctx) { return RecurrentShape(ctx, RecurrentKind::kLstm, true); });
  op.KernelKey("X").Kernel(DType::kF32, DynamicLstm);
}

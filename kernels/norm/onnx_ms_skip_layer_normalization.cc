// Layer normalisation of a sum, as ONNX Runtime's optimiser writes it.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/operands/broadcast_rows.h"

namespace heddle {
namespace {

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

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_ms_skip_layer_normalization) {
  op.Doc("input plus skip plus bias, rows to mean 0 and variance 1, scaled and shifted");
  op.Input("input").Input("skip").Input("gamma").Input("beta", kOptional);
  op.Input("bias", kOptional).Output("output").Output("mean", kOptional);
  op.Output("inv_std_var", kOptional).Output("input_skip_bias_sum", kOptional);
  op.Attr("epsilon", 1e-12).InferShape(SkipNormShape).Kernels<SkipNorm, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

// GELU behind a bias, as ONNX Runtime's optimiser writes it.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status BiasedGeluShape(ShapeContext& ctx, Key x, Key out) {
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

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_ms_fast_gelu) {
  op.Doc("gelu by tanh of X plus a bias of the last dimension").Input("X");
  op.Input("bias", kOptional).Output("Y");
  op.InferShape([](ShapeContext& ctx) { return BiasedGeluShape(ctx, "X", "Y"); });
  op.Kernels<FastGelu, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_ms_bias_gelu) {
  op.Doc("gelu of A plus a bias of the last dimension").Input("A").Input("B").Output("C");
  op.InferShape([](ShapeContext& ctx) { return BiasedGeluShape(ctx, "A", "C"); });
  op.Kernels<BiasGelu, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

#include <complex>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/binary_grad.h"

namespace heddle {
namespace {

struct ComplexFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static std::complex<T> Apply(T re, T im) {
    return {re, im};
  }
};

Status InferComplex(ShapeContext& ctx) {
  return BroadcastOut(ctx, "X", "Y", "Out",
                      ctx.InDType("X") == DType::kF64 ? DType::kC128 : DType::kC64);
}

template <typename T>
struct ComplexKernel {
  static Status Run(KernelContext& ctx) {
    return RunBinaryOp<SlotsXY>(ctx, BinaryLoop<ComplexFn, T, std::complex<T>>::kLoops);
  }
};

// The parts of Out@GRAD, summed to the operands' shapes.
template <typename T>
struct ComplexGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& dout = ctx.In("Out@GRAD");
    BroadcastPlan local;
    HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan* plan, PlanOf<SlotsXY>(ctx, &local));
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {ctx.OutOpt("X@GRAD"), ctx.OutOpt("Y@GRAD")}));
    if (dout.numel() != plan->numel || dout.dtype() != kDTypeOf<std::complex<T>>)
      return InvalidArgument("Out@GRAD is ", Name(dout.dtype()), " ", dout.shape().ToString(),
                             ", which does not fit X and Y");
    Tensor part = ctx.Scratch(kDTypeOf<T>, Shape{plan->numel});
    const auto store = [&](Tensor* d, int which, bool of_x) {
      if (d == nullptr) return;
      // The parts of a complex number lie side by side.
      const T* from = static_cast<const T*>(dout.raw()) + which;
      T* to = part.template mutable_data<T>();
      for (const auto part : Stretches(plan->numel))
        for (int64_t i = part.begin; i < part.end; ++i) to[i] = from[2 * i];
      RunBinaryGrad(ctx, *plan, LoopsOf<PassGrad, T>(), {nullptr, nullptr, nullptr, to},
                    kDTypeOf<T>, d, of_x);
    };
    store(ctx.OutOpt("X@GRAD"), 0, true);
    store(ctx.OutOpt("Y@GRAD"), 1, false);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(complex) {
  op.Doc("complex numbers from real and imaginary parts").Input("X").Input("Y").Output("Out");
  op.InferShape(&InferComplex).Prepare(&PrepareBroadcast<SlotsXY>);
  op.Kernels<ComplexKernel, float, double>();
}

HEDDLE_OP(complex_grad) {
  op.Doc("gradient of complex").Input("X", kNoBuffer).Input("Y", kNoBuffer).Input("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional).InferShape(&GradLikeInputs);
  op.KernelKey("X").Prepare(&PrepareBroadcast<SlotsXY>).Kernels<ComplexGrad, float, double>();
}

HEDDLE_EXAMPLES(complex, R"(
example float32 1x4
in X float32 [1, 4] 0.32 -0.52 -1.35 1.15
in Y float32 [4] 2.3 -0.25 -1.52 1.03
out Out complex64 [1, 4] 0.32+2.3j -0.52-0.25j -1.35-1.52j 1.15+1.03j

example float64 4x4
in X float64 [4, 4] 0.12 -0.95 -1.22 -1.75 0.92 -0.42 1.72 -2.02 1.99 0.39 1.19 -0.68 1.46 -0.15
  -1.49 0.65
in Y float64 [4, 4] 0.85 0.37 -1.81 -0.12 0.61 1.34 1.82 1.58 -0.36 -1.08 1.1 -0.6 -1.57 -1.33 0.13
  -0.84
out Out complex128 [4, 4] 0.12+0.85j -0.95+0.37j -1.22-1.81j -1.75-0.12j 0.92+0.61j -0.42+1.34j
  1.72+1.82j -2.02+1.58j 1.99-0.36j 0.39-1.08j 1.19+1.1j -0.68-0.6j 1.46-1.57j -0.15-1.33j
  -1.49+0.13j 0.65-0.84j

example float32 3x3x1x4
in X float32 [2, 1] 1.53 -1.54
in Y float32 [3, 3, 1, 4] 0.11 -1.11 1.81 0.48 -0.13 -0.62 -1.35 0.84 -0.74 -1.71 1.45 1.93 -0.25
  -1.59 -1.47 0.35 -0.98 -2.32 -0.86 -0.01 1.57 0.6 -0.5 -2.2 -1.84 -1.23 1.69 -1.96 -0.38 1.21 0.72
  0.96 -2.08 1.33 1.08 0.23
out Out complex64 [3, 3, 2, 4] 1.53+0.11j 1.53-1.11j 1.53+1.81j 1.53+0.48j -1.54+0.11j -1.54-1.11j
  -1.54+1.81j -1.54+0.48j 1.53-0.13j 1.53-0.62j 1.53-1.35j 1.53+0.84j -1.54-0.13j -1.54-0.62j
  -1.54-1.35j -1.54+0.84j 1.53-0.74j 1.53-1.71j 1.53+1.45j 1.53+1.93j -1.54-0.74j -1.54-1.71j
  -1.54+1.45j -1.54+1.93j 1.53-0.25j 1.53-1.59j 1.53-1.47j 1.53+0.35j -1.54-0.25j -1.54-1.59j
  -1.54-1.47j -1.54+0.35j 1.53-0.98j 1.53-2.32j 1.53-0.86j 1.53-0.01j -1.54-0.98j -1.54-2.32j
  -1.54-0.86j -1.54-0.01j 1.53+1.57j 1.53+0.6j 1.53-0.5j 1.53-2.2j -1.54+1.57j -1.54+0.6j -1.54-0.5j
  -1.54-2.2j 1.53-1.84j 1.53-1.23j 1.53+1.69j 1.53-1.96j -1.54-1.84j -1.54-1.23j -1.54+1.69j
  -1.54-1.96j 1.53-0.38j 1.53+1.21j 1.53+0.72j 1.53+0.96j -1.54-0.38j -1.54+1.21j -1.54+0.72j
  -1.54+0.96j 1.53-2.08j 1.53+1.33j 1.53+1.08j 1.53+0.23j -1.54-2.08j -1.54+1.33j -1.54+1.08j
  -1.54+0.23j
)")

HEDDLE_EXAMPLES(complex_grad, R"(
example complex64 1x4
in Out@GRAD complex64 [1, 4] 0.25+0j*4
in X float32 [1, 4] -1.66 -0.68 1.27 0.3
in Y float32 [4] -1.72 0.42 -0.65 1.49
out X@GRAD float32 [1, 4] 0.25*4
)")

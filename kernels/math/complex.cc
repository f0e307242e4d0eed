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

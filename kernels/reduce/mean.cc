#include "core/error.h"
#include "kernels/base/check.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

Status InferMean(ShapeContext& ctx) {
  ctx.SetOut("Out", Shape(), ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct Mean {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    RunReduce(ctx, MakeReducePlan(std::array{x.numel()}, 1),
              ReduceLoop<MeanReduction, T, T>::kLoops, x.raw(), ctx.Out("Out").mutable_raw());
    return Status::Ok();
  }
};

template <typename T>
struct MeanOfAllGrad {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    const Tensor& dout = ctx.In("Out@GRAD");
    Tensor& dx = ctx.Out("X@GRAD");
    if (dout.numel() != 1)
      return InvalidArgument("input Out@GRAD has shape ", dout.shape().ToString(),
                             ", expected one element");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&dx}));
    const int64_t n = dx.numel();
    const T each = static_cast<T>(static_cast<C>(dout.data<T>()[0]) / static_cast<C>(n));
    T* d = dx.mutable_data<T>();
    ctx.ParallelFor(n, 4 * kElementGrain,
                    [=](int64_t begin, int64_t end) { std::fill(d + begin, d + end, each); });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(mean) {
  op.Doc("mean of all elements").Input("X").Output("Out").InferShape(&InferMean);
  op.Kernels<Mean, float, double, float16, bfloat16, std::complex<float>, std::complex<double>>();
}

HEDDLE_OP(mean_grad) {
  op.Doc("gradient of mean").Input("X", kNoBuffer).Input("Out@GRAD").Output("X@GRAD");
  op.KernelKey("Out@GRAD").InferShape(&GradLikeInputs);
  op.Kernels<MeanOfAllGrad, float, double, float16, bfloat16, std::complex<float>,
             std::complex<double>>();
}

HEDDLE_EXAMPLES(mean_grad, R"(
example float64 4x3x1
in Out@GRAD float64 [] 0.1
in X float64 [4, 3, 1] -0.5 0.55 0.4 -0.05 -0.66 -0.2 0.1 0.85 -0.81 0.7 0.25 -0.35
out X@GRAD float64 [4, 3, 1] 0.008333333333333333*12

example float32 scalar
in Out@GRAD float32 [] -0.2
in X float32 [] 0
out X@GRAD float32 [] -0.2

example bfloat16 4x4
in Out@GRAD bfloat16 [] 1
in X bfloat16 [4, 4] 0*16
out X@GRAD bfloat16 [4, 4] 0.0625*16
)")

HEDDLE_EXAMPLES(mean, R"(
example float32
in X float32 [2, 3] -0.32 0.9 -0.54 -0.66 -0.02 0.81
out Out float32 [] 0.028333327

example float64
in X float64 [2, 3] 0.09 0.47 0.75 -0.3 0.6 0.83
out Out float64 [] 0.4066666666666667
)")

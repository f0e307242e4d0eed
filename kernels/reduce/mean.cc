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

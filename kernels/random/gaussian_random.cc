// gaussian_random, gaussian_random_batch_size_like and gaussian_inplace: normal numbers.
#include "kernels/base/shape_arg.h"
#include "kernels/elementwise/convert.h"
#include "kernels/random/random.h"

namespace heddle {
namespace {

Status FillNormal(const KernelContext& ctx, Tensor& out) {
  return FillRandom(ctx, out, ctx.Int("seed"), [&](auto c) {
    using C = decltype(c);
    return std::normal_distribution<C>(static_cast<C>(ctx.Float("mean")),
                                       static_cast<C>(ctx.Float("std")));
  });
}

Status RunGaussian(KernelContext& ctx) { return FillNormal(ctx, ctx.Out("Out")); }

Status RunGaussianInplace(KernelContext& ctx) { return FillNormal(ctx, ctx.Out("out")); }

Status RunGaussianGrad(KernelContext& ctx) {
  FillElements(ctx, ctx.Out("x@GRAD"), 0);
  return Status::Ok();
}

void DeclareGaussian(OpDef& op) {
  op.Traits(kRandom).Attr("mean", 0.0).Attr("std", 1.0).Attr("seed", 0);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(gaussian_random) {
  op.Doc("Numbers of the normal distribution.").Output("Out");
  DeclareShapeArg(op);
  DeclareGaussian(op);
  op.Attr("dtype", 5).InferShape(ShapeArgShape).AnyKernel(RunGaussian);
}

HEDDLE_OP(gaussian_random_batch_size_like) {
  op.Doc("gaussian_random with one dimension taken from Input.").Input("Input", kNoBuffer);
  op.Output("Out").Attr("shape", Ints{}).Attr("dtype", 5);
  op.Attr("input_dim_idx", 0).Attr("output_dim_idx", 0);
  DeclareGaussian(op);
  op.InferShape(BatchSizeLikeShape).AnyKernel(RunGaussian);
}

HEDDLE_OP(gaussian_inplace) {
  op.Doc("Overwrites x with numbers of the normal distribution.")
      .Input("x", kNoBuffer)
      .Output("out");
  DeclareGaussian(op);
  op.InferShape(SameShape).AnyKernel(RunGaussianInplace);
}

HEDDLE_OP(gaussian_inplace_grad) {
  op.Input("out@GRAD", kNoBuffer).Output("x@GRAD").InferShape(SameShape).AnyKernel(RunGaussianGrad);
}

HEDDLE_EXAMPLES(gaussian_random, R"(
example float32
random
attr shape LONGS [40, 50]
attr mean FLOAT 1.0
attr std FLOAT 2.0
attr seed INT 7
attr dtype INT 5
out Out float32 [40, 50] mean 1 0.2 var 4 0.6 range -10 12

example float64
random
attr shape LONGS [40, 50]
attr mean FLOAT 1.0
attr std FLOAT 2.0
attr seed INT 7
attr dtype INT 6
out Out float64 [40, 50] mean 1 0.2 var 4 0.6 range -10 12
)")

HEDDLE_EXAMPLES(gaussian_random_batch_size_like, R"(
example float32
random
attr shape INTS [-1, 50]
attr mean FLOAT 1.0
attr std FLOAT 2.0
attr seed INT 7
attr dtype INT 5
in Input float32 [40, 1] 0*40
from gaussian_random -> Out=Out
attr shape LONGS [40, 50]
attr mean FLOAT 1.0
attr std FLOAT 2.0
attr seed INT 7
attr dtype INT 5
out Out float32 [40, 50] mean 1 0.2 var 4 0.6 range -10 12

example float64
random
attr shape INTS [-1, 50]
attr mean FLOAT 1.0
attr std FLOAT 2.0
attr seed INT 7
attr dtype INT 6
in Input float32 [40, 1] 0*40
from gaussian_random -> Out=Out
attr shape LONGS [40, 50]
attr mean FLOAT 1.0
attr std FLOAT 2.0
attr seed INT 7
attr dtype INT 6
out Out float64 [40, 50] mean 1 0.2 var 4 0.6 range -10 12
)")

HEDDLE_EXAMPLES(gaussian_inplace, R"(
example float32
random
attr mean FLOAT 1.0
attr std FLOAT 2.0
attr seed INT 7
in x float32 [40, 50] 0*2000
out out float32 [40, 50] mean 1 0.2 var 4 0.6 range -10 12

example float64
random
attr mean FLOAT 1.0
attr std FLOAT 2.0
attr seed INT 7
in x float64 [40, 50] 0*2000
out out float64 [40, 50] mean 1 0.2 var 4 0.6 range -10 12
)")

HEDDLE_EXAMPLES(gaussian_inplace_grad, R"(
example float32
in out@GRAD float32 [2, 3] 0.75 -0.67 1 -0.31 -0.37 0.69
from fill_zeros_like X=out@GRAD -> Out=x@GRAD
out x@GRAD float32 [2, 3] 0*6

example float64
in out@GRAD float64 [2, 3] -0.54 -0.66 -0.02 0.81 0.77 -0.61
from fill_zeros_like X=out@GRAD -> Out=x@GRAD
out x@GRAD float64 [2, 3] 0*6
)")

// gaussian_random, gaussian_random_batch_size_like and gaussian_inplace: normal numbers.
#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"
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

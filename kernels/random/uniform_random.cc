// uniform_random, uniform_random_batch_size_like, uniform_random_inplace.
#include "core/interrupts.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"
#include "kernels/base/visit_one_of.h"
#include "kernels/random/random.h"

namespace heddle {
namespace {

// Puts diag_val on diag_num elements, each diag_step + 1 columns after the one before.
Status SetDiagonal(const KernelContext& ctx, Tensor& out) {
  const int64_t num = ctx.Int("diag_num"), step = ctx.Int("diag_step");
  if (num <= 0) return Status::Ok();
  if (step < 0 || num > (int64_t{1} << 31) || step > (int64_t{1} << 31) ||
      (num - 1) * (step + 1) >= out.numel())
    return OutOfRange("diag_num ", num, " and diag_step ", step, " reach past the ", out.numel(),
                      " elements");
  VisitOneOf<float, double, float16, bfloat16>("Out", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const int64_t i : Watched(num))
      out.mutable_data<T>()[i * (step + 1)] = ConvertTo<T>(ctx.Float("diag_val"));
  });
  return Status::Ok();
}

Status DrawUniform(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  const double low = ctx.Float("min"), high = ctx.Float("max");
  if (!(low <= high)) return InvalidArgument("min ", low, " must not be greater than max ", high);
  return FillRandom(ctx, out, ctx.Int("seed"), [&](auto c) {
    using C = decltype(c);
    return std::uniform_real_distribution<C>(static_cast<C>(low), static_cast<C>(high));
  });
}

Status RunUniform(KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(DrawUniform(ctx));
  return SetDiagonal(ctx, ctx.Out("Out"));
}

Status RunUniformGrad(KernelContext& ctx) {
  FillElements(ctx, ctx.Out("X@GRAD"), 0);
  return Status::Ok();
}

void DeclareUniform(OpDef& op) {
  op.Traits(kRandom).Attr("min", -1.0).Attr("max", 1.0).Attr("seed", 0);
  op.Attr("diag_num", 0).Attr("diag_step", 0).Attr("diag_val", 1.0);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(uniform_random) {
  op.Doc("Numbers drawn evenly from [min, max).").Output("Out");
  DeclareShapeArg(op);
  DeclareUniform(op);
  op.Attr("dtype", 5).InferShape(ShapeArgShape).AnyKernel(RunUniform);
}
HEDDLE_OP(uniform_random_batch_size_like) {
  op.Doc("uniform_random with one dimension taken from Input.").Input("Input", kNoBuffer);
  op.Output("Out").Attr("shape", Ints{}).Attr("dtype", 5);
  op.Attr("input_dim_idx", 0).Attr("output_dim_idx", 0);
  DeclareUniform(op);
  op.InferShape(BatchSizeLikeShape).AnyKernel(RunUniform);
}
HEDDLE_OP(uniform_random_inplace) {
  op.Doc("Overwrites X with numbers drawn evenly from [min, max).").Input("X", kNoBuffer);
  op.Output("Out");
  DeclareUniform(op);  // as in Paddle, what it says of a diagonal counts for nothing
  op.InferShape(SameShape).AnyKernel(DrawUniform);
}
HEDDLE_OP(uniform_random_inplace_grad) {
  op.Input("Out@GRAD", kNoBuffer).Output("X@GRAD").InferShape(SameShape).AnyKernel(RunUniformGrad);
}

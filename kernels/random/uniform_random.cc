// uniform_random, uniform_random_batch_size_like, uniform_random_inplace.
#include "core/interrupts.h"
#include "kernels/base/shape_arg.h"
#include "kernels/base/visit_one_of.h"
#include "kernels/elementwise/convert.h"
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

Status RunUniform(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  const double low = ctx.Float("min"), high = ctx.Float("max");
  if (!(low <= high)) return InvalidArgument("min ", low, " must not be greater than max ", high);
  HEDDLE_RETURN_IF_ERROR(FillRandom(ctx, out, ctx.Int("seed"), [&](auto c) {
    using C = decltype(c);
    return std::uniform_real_distribution<C>(static_cast<C>(low), static_cast<C>(high));
  }));
  return SetDiagonal(ctx, out);
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
  DeclareUniform(op);
  op.InferShape(SameShape).AnyKernel(RunUniform);
}
HEDDLE_OP(uniform_random_inplace_grad) {
  op.Input("Out@GRAD", kNoBuffer).Output("X@GRAD").InferShape(SameShape).AnyKernel(RunUniformGrad);
}

HEDDLE_EXAMPLES(uniform_random, R"(
example float32
random
attr shape LONGS [40, 50]
attr min FLOAT -2.0
attr max FLOAT 3.0
attr seed INT 7
attr dtype INT 5
out Out float32 [40, 50] mean 0.5 0.15 var 2.0833 0.25 range -2 3

example float64
random
attr shape LONGS [40, 50]
attr min FLOAT -2.0
attr max FLOAT 3.0
attr seed INT 7
attr dtype INT 6
out Out float64 [40, 50] mean 0.5 0.15 var 2.0833 0.25 range -2 3
)")

HEDDLE_EXAMPLES(uniform_random_batch_size_like, R"(
example rows of Input
random
attr shape INTS [-1, 50]
attr min FLOAT -2.0
attr max FLOAT 3.0
attr seed INT 7
attr dtype INT 5
in Input float32 [40, 1] 0*40
out Out float32 [40, 50] mean 0.5 0.15 var 2.0833 0.25 range -2 3
)")

HEDDLE_EXAMPLES(uniform_random_inplace, R"(
example float32
random
attr min FLOAT -2.0
attr max FLOAT 3.0
attr seed INT 7
in X float32 [40, 50] 0*2000
out Out float32 [40, 50] mean 0.5 0.15 var 2.0833 0.25 range -2 3

example float64
random
attr min FLOAT -2.0
attr max FLOAT 3.0
attr seed INT 7
in X float64 [40, 50] 0*2000
out Out float64 [40, 50] mean 0.5 0.15 var 2.0833 0.25 range -2 3
)")

HEDDLE_EXAMPLES(uniform_random_inplace_grad, R"(
example float32
in Out@GRAD float32 [2, 3] 0.76 0.35 -0.89 0.12 0.39 0.65
from fill_zeros_like X=Out@GRAD -> Out=X@GRAD
out X@GRAD float32 [2, 3] 0*6

example float64
in Out@GRAD float64 [2, 3] 0.04 -0.65 0.8 -0.24 0.41 0.02
from fill_zeros_like X=Out@GRAD -> Out=X@GRAD
out X@GRAD float64 [2, 3] 0*6
)")

// rnn_memory_helper: marks the states of a block that `recurrent` runs; a copy otherwise.
#include "core/kernel_context.h"
#include "core/operands/slot_kinds.h"
#include "core/shape_context.h"
#include "core/shapes.h"
#include "kernels/control/steps.h"
#include "kernels/index/index_value.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Without a gradient of Out — nobody reads the last state — X's is 0.
Status MemoryHelperGrad(KernelContext& ctx) {
  const Value* grad = ctx.InVar("Out@GRAD");
  Value* out = ctx.OutVar("X@GRAD");
  if (out == nullptr) return Status::Ok();
  if (grad != nullptr && grad->initialized())
    CopyToOutput(ctx, *grad, out);
  else if (const Value* x = ctx.InVar("X"); x != nullptr && !x->is_tensor())
    ZeroLike(ctx, *x, out);
  else if (x != nullptr)
    ZeroBytes(ctx, ctx.Out("X@GRAD").mutable_raw(), ctx.Out("X@GRAD").bytes());
  return Status::Ok();
}

Status MemoryHelper(KernelContext& ctx) {
  CopyToOutput(ctx, *ctx.InVar("X"), ctx.OutVar("Out"));
  return Status::Ok();
}

Status GradShape(ShapeContext& ctx) {
  for (const Key like : {Key("Out@GRAD"), Key("X")}) {
    const Value* v = ctx.InVar(like);
    if (v == nullptr || !ctx.HasIn(like)) continue;
    if (!v->is_tensor()) return ctx.Defer();
    ctx.SetOut("X@GRAD", ctx.InShape(like), ctx.InDType(like));
    ctx.ShareLoD(like, "X@GRAD");
    return Status::Ok();
  }
  return ctx.Defer();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(rnn_memory_helper) {
  op.Doc("A copy of X.")
      .Input("X", kAnyKind | kTakesAll)
      .Output("Out", kTakesAll)
      .Attr("dtype", 5)
      .InferShape(SameShape);
  op.AnyKernel(MemoryHelper);
}

HEDDLE_OP(rnn_memory_helper_grad) {
  op.Input("X", kOptional | kAnyKind | kTakesAll)
      .Input("Out", kOptional)
      .Input("Out@GRAD", kOptional | kAnyKind | kTakesAll)
      .Output("X@GRAD", kTakesAll);
  op.Attr("dtype", 5).InferShape(GradShape).AnyKernel(MemoryHelperGrad);
}

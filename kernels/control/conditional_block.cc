#include "core/kernel_context.h"
#include "core/shape_context.h"
#include "kernels/control/steps.h"

namespace heddle {
namespace {

// A scalar condition is a bool; otherwise the block runs when every input tensor has elements.
Result<bool> IsTaken(const KernelContext& ctx) {
  if (ctx.Bool("is_scalar_condition")) {
    const Tensor& condition = ctx.In("Cond");
    if (!condition.initialized() || condition.dtype() != DType::kBool || condition.numel() != 1)
      return InvalidArgument("'Cond' must be one bool; it is ", Name(condition.dtype()), " ",
                             condition.shape().ToString());
    return *condition.data<bool>();
  }
  bool taken = true;
  for (int i = 0; i < ctx.InCount("Input"); ++i)
    if (const Value* v = ctx.InVar("Input", i); v != nullptr && v->is_tensor())
      taken = taken && v->initialized() && v->tensor().numel() > 0;
  return taken;
}

Status ConditionalBlock(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const bool taken, IsTaken(ctx));
  return taken ? ctx.RunBlock(ctx.Attr<BlockRef>("sub_block")) : Status::Ok();
}

// The kernel writes nothing: what is written, the block writes.
Status BlockWrites(ShapeContext&) { return Status::Ok(); }

// Runs the gradient block; zeros for inputs without a gradient in it, and when the block did not
// run.
Status ConditionalBlockGrad(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const bool taken, IsTaken(ctx));
  if (taken) {
    for (int i = 0; i < ctx.InCount("sub_block:given(Out@GRAD)"); ++i)
      if (const Value* given = ctx.InVar("sub_block:given(Out@GRAD)", i);
          given != nullptr && !given->initialized())
        return InvalidArgument("'Out@GRAD' [", i, "] holds nothing, but the block runs");
    for (int i = 0; i < ctx.InCount("sub_block:grad(Input)"); ++i)
      if (Value* inside = ctx.InVar("sub_block:grad(Input)", i)) inside->Clear();
    HEDDLE_RETURN_IF_ERROR(ctx.RunBlock(ctx.Attr<BlockRef>("sub_block")));
  }
  for (int i = 0; i < ctx.OutCount("Input@GRAD"); ++i) {
    Value* outside = ctx.OutVar("Input@GRAD", i);
    if (outside == nullptr) continue;
    const Value* inside = taken ? ctx.InVar("sub_block:grad(Input)", i) : nullptr;
    const Value* input = ctx.InVar("Input", i);
    if (inside != nullptr && inside->initialized())
      *outside = *inside;
    else if (input != nullptr)
      ZeroLike(ctx, *input, outside);
  }
  return Status::Ok();
}

// A gradient has the shape of its input.
Status ConditionalGradShapes(ShapeContext& ctx) {
  bool told = true;
  for (int i = 0; i < ctx.OutCount("Input@GRAD"); ++i) {
    if (!ctx.HasOut("Input@GRAD", i)) continue;
    const bool known = i < ctx.InCount("Input") && ctx.InVar("Input", i) != nullptr &&
                       ctx.HasIn("Input", i) && ctx.InShape("Input", i).is_static();
    told = told && known;
    if (known) ctx.SetOut("Input@GRAD", ctx.InShape("Input", i), ctx.InDType("Input", i), i);
  }
  return told ? Status::Ok() : ctx.Defer();
}

void DefineBlock(OpDef& op) {
  op.Doc("Runs sub_block once when the condition holds; otherwise its outputs stay as they are.")
      .Input("Cond", kList)
      .Input("Input", kList | kOptional)
      .Output("Out", kList | kOptional)
      .Output("Scope", kOptional | kRecord)
      .Attr("sub_block", BlockRef{})
      .Attr("is_scalar_condition", false)
      .Traits(kControlFlow)
      .InferShape(BlockWrites)
      .AnyKernel(ConditionalBlock);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(conditional_block) { DefineBlock(op); }
// The form of conditional_block that Paddle's pruning for inference writes.
HEDDLE_OP(conditional_block_infer) { DefineBlock(op); }
HEDDLE_OP(conditional_block_grad) {
  op.Doc("Runs the gradient block sub_block when the condition holds; otherwise gradients are 0.")
      .Input("Cond", kList)
      .Input("Input", kList | kOptional)
      .Input("Out", kList | kOptional)
      .Input("Out@GRAD", kList | kOptional)
      .Input("Scope", kOptional | kRecord)
      .Input("sub_block:grad(Input)", kList | kOptional)
      .Input("sub_block:given(Out@GRAD)", kList | kOptional)
      .Output("Input@GRAD", kList | kOptional)
      .Output("Cond@GRAD", kList | kOptional)
      .Attr("sub_block", BlockRef{})
      .Attr("is_scalar_condition", false)
      .Traits(kControlFlow)
      .InferShape(ConditionalGradShapes)
      .AnyKernel(ConditionalBlockGrad);
}

// A forward block with a gradient block of its own (paddle.static.nn.static_pylayer).
#include "core/kernel_context.h"
#include "kernels/control/steps.h"

namespace heddle {
namespace {

Status Forward(KernelContext& ctx) {
  const auto& blocks = ctx.Attr<std::vector<BlockRef>>("blocks");
  if (blocks.empty()) return InvalidArgument("there is no block to run");
  return ctx.RunBlock(blocks[0]);
}

// Runs the gradient block; zeros for inputs without a gradient in it.
Status Backward(KernelContext& ctx) {
  for (int i = 0; i < ctx.InCount("sub_block:grad(Input)"); ++i)
    if (Value* inside = ctx.InVar("sub_block:grad(Input)", i)) inside->Clear();
  HEDDLE_RETURN_IF_ERROR(ctx.RunBlock(ctx.Attr<BlockRef>("backward_block")));
  for (int i = 0; i < ctx.OutCount("Input@GRAD"); ++i) {
    Value* outside = ctx.OutVar("Input@GRAD", i);
    if (outside == nullptr) continue;
    const Value *inside = ctx.InVar("sub_block:grad(Input)", i), *input = ctx.InVar("Input", i);
    if (inside != nullptr && inside->initialized())
      *outside = *inside;
    else if (input != nullptr)
      ZeroLike(ctx, *input, outside);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(pylayer) {
  op.Doc("Runs the first of `blocks`; the second one computes the gradient.");
  op.Input("Input", kList | kOptional).Output("Out", kList | kOptional);
  op.Output("Scope", kOptional | kRecord).Attr("blocks", std::vector<BlockRef>{});
  op.Traits(kControlFlow).AnyKernel(Forward);
}
HEDDLE_OP(pylayer_grad) {
  op.Doc("Runs the gradient block of a pylayer.");
  op.Input("Input", kList | kOptional).Input("Out@GRAD", kList | kOptional);
  op.Input("Scope", kOptional | kRecord);
  op.Input("sub_block:grad(Input)", kList | kOptional);
  op.Output("Input@GRAD", kList | kOptional).Attr("backward_block", BlockRef{});
  op.Traits(kControlFlow).AnyKernel(Backward);
}

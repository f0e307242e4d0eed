#include "core/op_context.h"

namespace heddle {
namespace {

// A scalar condition is a bool; otherwise the block runs when every condition tensor has elements.
Status ConditionalBlock(KernelContext& ctx) {
  bool taken = true;
  if (ctx.Bool("is_scalar_condition")) {
    const Tensor& condition = ctx.In("Cond");
    if (!condition.initialized() || condition.dtype() != DType::kBool || condition.numel() != 1)
      return InvalidArgument("'Cond' must be one bool; it is ", Name(condition.dtype()), " ",
                             condition.shape().ToString());
    taken = *condition.data<bool>();
  } else {
    for (int i = 0; i < ctx.InCount("Cond"); ++i) taken = taken && ctx.In("Cond", i).numel() > 0;
  }
  return taken ? ctx.RunBlock(ctx.Attr<BlockRef>("sub_block")) : Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(conditional_block) {
  op.Doc("Runs sub_block once when the condition holds; otherwise its outputs stay as they are.")
      .Input("Cond", kList)
      .Input("Input", kList | kOptional)
      .Output("Out", kList | kOptional)
      .Output("Scope", kOptional)
      .Attr("sub_block", BlockRef{})
      .Attr("is_scalar_condition", false)
      .Traits(kControlFlow)
      .AnyKernel(ConditionalBlock);
}

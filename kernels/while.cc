#include "core/op_context.h"

namespace heddle {
namespace {

Status While(KernelContext& ctx) {
  const BlockRef body = ctx.Attr<BlockRef>("sub_block");
  for (;;) {
    const Tensor& condition = ctx.In("Condition");
    if (!condition.initialized() || condition.dtype() != DType::kBool || condition.numel() != 1)
      return InvalidArgument("'Condition' must be one bool; it is ", Name(condition.dtype()), " ",
                             condition.shape().ToString());
    if (!*condition.data<bool>()) return Status::Ok();
    HEDDLE_RETURN_IF_ERROR(ctx.RunBlock(body));
  }
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(while) {
  op.Doc("Runs sub_block again and again while Condition, which the block updates, is true.")
      .Input("X", kList | kOptional)
      .Input("Condition")
      .Output("Out", kList | kOptional)
      .Output("StepScopes", kOptional)
      .Attr("sub_block", BlockRef{})
      .Attr("is_test", false)
      .Traits(kControlFlow)
      .AnyKernel(While);
}

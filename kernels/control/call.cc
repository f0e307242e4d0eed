// heddle's own: a block as a function.
#include "core/kernel_context.h"
#include "kernels/index/index_value.h"

namespace heddle {
namespace {

// Values are copied, since the block may rewrite its parameters, and the next call its results.
Status Call(KernelContext& ctx) {
  const int given = ctx.InCount("X"), parameters = ctx.OutCount("sub_block:parameters");
  if (given != parameters)
    return InvalidArgument("the block takes ", parameters, " values, but is given ", given);
  const int wanted = ctx.OutCount("Out"), results = ctx.InCount("sub_block:results");
  if (wanted != results)
    return InvalidArgument("the block has ", results, " results, but 'Out' names ", wanted);
  for (int i = 0; i < given; ++i) {
    const Value* from = ctx.InVar("X", i);
    Value* to = ctx.OutVar("sub_block:parameters", i);
    if (from == nullptr || to == nullptr)
      return InvalidArgument("parameter ", i, " is no variable of the block, or has no value");
    CopyValue(ctx, *from, to);
  }
  HEDDLE_RETURN_IF_ERROR(ctx.RunBlock(ctx.Attr<BlockRef>("sub_block")));
  for (int i = 0; i < wanted; ++i) {
    const Value* from = ctx.InVar("sub_block:results", i);
    Value* to = ctx.OutVar("Out", i);
    if (to == nullptr) continue;
    if (from == nullptr) return InvalidArgument("result ", i, " is no variable of the block");
    CopyValue(ctx, *from, to);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(call) {
  op.Doc(
      "Runs sub_block as a function: X become its variables `parameters`, and Out what its "
      "variables "
      "`results` hold in the end. The inline_calls pass puts the block in the place of the call, "
      "unless "
      "noinline is set");
  op.Input("X", kList | kOptional).Output("Out", kList | kOptional);
  op.Output("sub_block:parameters", kList | kOptional);
  op.Input("sub_block:results", kList | kOptional);
  op.Attr("sub_block", BlockRef{}).Attr("parameters", Strings{}).Attr("results", Strings{});
  op.Attr("noinline", false);
  op.Traits(kControlFlow).AnyKernel(Call);
}

// A forward block with a gradient block of its own (paddle.static.nn.static_pylayer).
#include "core/op_context.h"
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
  op.Input("Input", kList | kOptional).Input("Out", kList | kOptional);
  op.Input("Out@GRAD", kList | kOptional).Input("Scope", kOptional | kRecord);
  op.Input("sub_block:grad(Input)", kList | kOptional);
  op.Output("Input@GRAD", kList | kOptional).Attr("backward_block", BlockRef{});
  op.Traits(kControlFlow).AnyKernel(Backward);
}

HEDDLE_EXAMPLES(pylayer, R"(
example a block as its forward
in x float32 [2] 1 -2
var s step_scopes
op pylayer Input=x -> Out=y Scope=s
attr blocks BLOCKS [1]
out y float32 [2] 0.7615942 -0.9640276
block 1 0
op tanh X=x -> Out=y
)")

HEDDLE_EXAMPLES(pylayer_grad, R"(
example three times the gradient
in x float32 [3] 0.18 0.4 -0.62
var g0 step_scopes
op pylayer Input=x -> Out=_generated_var_0 Scope=g0
attr blocks BLOCKS [1, 2]
op reduce_sum X=_generated_var_0 -> Out=s0
attr dim INTS []
op fill_any_like X=s0 -> Out=s0@GRAD
attr dtype INT 5
attr value FLOAT 1.0
op reduce_sum_grad Out@GRAD=s0@GRAD X=_generated_var_0 -> X@GRAD=_generated_var_0@GRAD
attr dim INTS []
op pylayer_grad Input=x Out@GRAD=_generated_var_0@GRAD Scope=g0 -> Input@GRAD=x@GRAD
attr backward_block BLOCK 2
block 1 0
op tanh X=x -> Out=t0
op assign X=t0 -> Out=_generated_var_0
block 2 0 1
var x@GRAD dense float32
op assign X=_generated_var_0@GRAD -> Out=g1
op scale X=g1 -> Out=x@GRAD
attr scale FLOAT 3.0
out _generated_var_0 float32 [3] 0.17808086 0.379949 -0.55112803
out x@GRAD float32 [3] 3 3 3
)")

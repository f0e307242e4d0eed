#include "core/op_context.h"
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

HEDDLE_EXAMPLES(conditional_block, R"(
example taken
in c bool [1] 1
in x float32 [3] 1 -2 0.5
in y float32 [3] 7 8 9
var s step_scopes
op conditional_block Cond=c Input=x -> Out=y Scope=s
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 1
out y float32 [3] 3 -6 1.5
block 1 0
op scale X=x -> Out=y
attr scale FLOAT 3

example not taken
in c bool [1] 0
in x float32 [3] 1 -2 0.5
in y float32 [3] 7 8 9
var s step_scopes
op conditional_block Cond=c Input=x -> Out=y Scope=s
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 1
out y float32 [3] 7 8 9
block 1 0
op scale X=x -> Out=y
attr scale FLOAT 3

example without a scalar condition, taken since the operand has elements
in c float32 [2] 0 0
in x float32 [3] 1 -2 0.5
in y float32 [3] 7 8 9
var s step_scopes
op conditional_block Cond=c Input=x -> Out=y Scope=s
attr sub_block BLOCK 1
out y float32 [3] 3 -6 1.5
block 1 0
op scale X=x -> Out=y
attr scale FLOAT 3
)")

HEDDLE_EXAMPLES(conditional_block_infer, R"(
example taken
in c bool [1] 1
in x float32 [3] 1 -2 0.5
in y float32 [3] 7 8 9
var s step_scopes
op conditional_block_infer Cond=c Input=x -> Out=y Scope=s
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 1
out y float32 [3] 3 -6 1.5
block 1 0
op scale X=x -> Out=y
attr scale FLOAT 3

example not taken
in c bool [1] 0
in x float32 [3] 1 -2 0.5
in y float32 [3] 7 8 9
var s step_scopes
op conditional_block_infer Cond=c Input=x -> Out=y Scope=s
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 1
out y float32 [3] 7 8 9
block 1 0
op scale X=x -> Out=y
attr scale FLOAT 3
)")

HEDDLE_EXAMPLES(conditional_block_grad, R"(
example cond, first branch
in c bool [1] 1
in x float32 [2] -0.55 0.34
in y float32 [2] 0.47 -0.48
var g0 step_scopes
var g1 step_scopes
op conditional_block Cond=c Input=x,y -> Out=g2 Scope=g0
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 1
op logical_not X=c -> Out=l0
op conditional_block Cond=l0 Input=x,y -> Out=g3 Scope=g1
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 2
op cast X=c -> Out=c0
attr in_dtype INT 0
attr out_dtype INT 2
op select_input Mask=c0 X=g3,g2 -> Out=_generated_var_4
op reduce_sum X=_generated_var_4 -> Out=s0
attr dim INTS []
op fill_any_like X=s0 -> Out=s0@GRAD
attr dtype INT 5
attr value FLOAT 1.0
op reduce_sum_grad Out@GRAD=s0@GRAD X=_generated_var_4 -> X@GRAD=_generated_var_4@GRAD
attr dim INTS []
op select_output Mask=c0 X=_generated_var_4@GRAD -> Out=g3@GRAD,g2@GRAD
op conditional_block_grad Cond=l0 Input=x,y Out=g3 Out@GRAD=g3@GRAD Scope=g1 ->
  Input@GRAD=x@GRAD@RENAME@block0@0,y@GRAD@RENAME@block0@0
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 3
op conditional_block_grad Cond=c Input=x,y Out=g2 Out@GRAD=g2@GRAD Scope=g0 ->
  Input@GRAD=x@GRAD@RENAME@block0@1,y@GRAD@RENAME@block0@1
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 4
op sum X=x@GRAD@RENAME@block0@0,x@GRAD@RENAME@block0@1 -> Out=x@GRAD
op sum X=y@GRAD@RENAME@block0@0,y@GRAD@RENAME@block0@1 -> Out=y@GRAD
block 1 0
op elementwise_mul X=x Y=y -> Out=tmp_6
op assign X=tmp_6 -> Out=g2
block 2 0
op elementwise_sub X=x Y=y -> Out=tmp_7
op assign X=tmp_7 -> Out=g3
block 3 0 2
var x@GRAD dense float32
var y@GRAD dense float32
op assign X=g3@GRAD -> Out=tmp_7@GRAD
op elementwise_sub_grad Out@GRAD=tmp_7@GRAD X=x Y=y -> X@GRAD=x@GRAD Y@GRAD=y@GRAD
block 4 0 1
var x@GRAD dense float32
var y@GRAD dense float32
op assign X=g2@GRAD -> Out=tmp_6@GRAD
op elementwise_mul_grad Out@GRAD=tmp_6@GRAD X=x Y=y -> X@GRAD=x@GRAD Y@GRAD=y@GRAD
out _generated_var_4 float32 [2] -0.2585 -0.16319999
out x@GRAD float32 [2] 0.47 -0.48
out y@GRAD float32 [2] -0.55 0.34

example cond, second branch
in c bool [1] 0
in x float32 [2] -0.81 0.92
in y float32 [2] -0.5 -0.44
var g0 step_scopes
var g1 step_scopes
op conditional_block Cond=c Input=x,y -> Out=g2 Scope=g0
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 1
op logical_not X=c -> Out=l0
op conditional_block Cond=l0 Input=x,y -> Out=g3 Scope=g1
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 2
op cast X=c -> Out=c0
attr in_dtype INT 0
attr out_dtype INT 2
op select_input Mask=c0 X=g3,g2 -> Out=_generated_var_4
op reduce_sum X=_generated_var_4 -> Out=s0
attr dim INTS []
op fill_any_like X=s0 -> Out=s0@GRAD
attr dtype INT 5
attr value FLOAT 1.0
op reduce_sum_grad Out@GRAD=s0@GRAD X=_generated_var_4 -> X@GRAD=_generated_var_4@GRAD
attr dim INTS []
op select_output Mask=c0 X=_generated_var_4@GRAD -> Out=g3@GRAD,g2@GRAD
op conditional_block_grad Cond=l0 Input=x,y Out=g3 Out@GRAD=g3@GRAD Scope=g1 ->
  Input@GRAD=x@GRAD@RENAME@block0@0,y@GRAD@RENAME@block0@0
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 3
op conditional_block_grad Cond=c Input=x,y Out=g2 Out@GRAD=g2@GRAD Scope=g0 ->
  Input@GRAD=x@GRAD@RENAME@block0@1,y@GRAD@RENAME@block0@1
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 4
op sum X=x@GRAD@RENAME@block0@0,x@GRAD@RENAME@block0@1 -> Out=x@GRAD
op sum X=y@GRAD@RENAME@block0@0,y@GRAD@RENAME@block0@1 -> Out=y@GRAD
block 1 0
op elementwise_mul X=x Y=y -> Out=tmp_8
op assign X=tmp_8 -> Out=g2
block 2 0
op elementwise_sub X=x Y=y -> Out=tmp_9
op assign X=tmp_9 -> Out=g3
block 3 0 2
var x@GRAD dense float32
var y@GRAD dense float32
op assign X=g3@GRAD -> Out=tmp_9@GRAD
op elementwise_sub_grad Out@GRAD=tmp_9@GRAD X=x Y=y -> X@GRAD=x@GRAD Y@GRAD=y@GRAD
block 4 0 1
var x@GRAD dense float32
var y@GRAD dense float32
op assign X=g2@GRAD -> Out=tmp_8@GRAD
op elementwise_mul_grad Out@GRAD=tmp_8@GRAD X=x Y=y -> X@GRAD=x@GRAD Y@GRAD=y@GRAD
out _generated_var_4 float32 [2] -0.31 1.36
out x@GRAD float32 [2] 1 1
out y@GRAD float32 [2] -1 -1

example cond, first branch, no. 2
in c bool [1] 1
in x float32 [2] 0.18 0.4
in y float32 [2] -0.62 -0.91
var g0 step_scopes
var g1 step_scopes
op conditional_block Cond=c Input=y,x -> Out=g2 Scope=g0
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 1
op logical_not X=c -> Out=l0
op conditional_block Cond=l0 Input=y,x -> Out=g3 Scope=g1
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 2
op cast X=c -> Out=c0
attr in_dtype INT 0
attr out_dtype INT 2
op select_input Mask=c0 X=g3,g2 -> Out=_generated_var_4
op reduce_sum X=_generated_var_4 -> Out=s0
attr dim INTS []
op fill_any_like X=s0 -> Out=s0@GRAD
attr dtype INT 5
attr value FLOAT 1.0
op reduce_sum_grad Out@GRAD=s0@GRAD X=_generated_var_4 -> X@GRAD=_generated_var_4@GRAD
attr dim INTS []
op select_output Mask=c0 X=_generated_var_4@GRAD -> Out=g3@GRAD,g2@GRAD
op conditional_block_grad Cond=l0 Input=y,x Out=g3 Out@GRAD=g3@GRAD Scope=g1 ->
  Input@GRAD=y@GRAD@RENAME@block0@0,x@GRAD@RENAME@block0@0
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 3
op conditional_block_grad Cond=c Input=y,x Out=g2 Out@GRAD=g2@GRAD Scope=g0 ->
  Input@GRAD=y@GRAD@RENAME@block0@1,x@GRAD@RENAME@block0@1
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 4
op sum X=y@GRAD@RENAME@block0@0,y@GRAD@RENAME@block0@1 -> Out=y@GRAD
op sum X=x@GRAD@RENAME@block0@0,x@GRAD@RENAME@block0@1 -> Out=x@GRAD
block 1 0
op elementwise_mul X=x Y=y -> Out=tmp_0
op assign X=tmp_0 -> Out=g2
block 2 0
op elementwise_sub X=x Y=y -> Out=tmp_1
op assign X=tmp_1 -> Out=g3
block 3 0
var x@GRAD dense float32
var y@GRAD dense float32
op assign X=g3@GRAD -> Out=tmp_1@GRAD
op elementwise_sub_grad Out@GRAD=tmp_1@GRAD X=x Y=y -> X@GRAD=x@GRAD Y@GRAD=y@GRAD
block 4 0
var x@GRAD dense float32
var y@GRAD dense float32
op assign X=g2@GRAD -> Out=tmp_0@GRAD
op elementwise_mul_grad Out@GRAD=tmp_0@GRAD X=x Y=y -> X@GRAD=x@GRAD Y@GRAD=y@GRAD
out _generated_var_4 float32 [2] -0.111600004 -0.36400002
out x@GRAD float32 [2] -0.62 -0.91
out y@GRAD float32 [2] 0.18 0.4

example cond, second branch, no. 2
in c bool [1] 0
in x float32 [2] -0.59 -0.79
in y float32 [2] 0.45 0.36
var g0 step_scopes
var g1 step_scopes
op conditional_block Cond=c Input=y,x -> Out=g2 Scope=g0
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 1
op logical_not X=c -> Out=l0
op conditional_block Cond=l0 Input=y,x -> Out=g3 Scope=g1
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 2
op cast X=c -> Out=c0
attr in_dtype INT 0
attr out_dtype INT 2
op select_input Mask=c0 X=g3,g2 -> Out=_generated_var_4
op reduce_sum X=_generated_var_4 -> Out=s0
attr dim INTS []
op fill_any_like X=s0 -> Out=s0@GRAD
attr dtype INT 5
attr value FLOAT 1.0
op reduce_sum_grad Out@GRAD=s0@GRAD X=_generated_var_4 -> X@GRAD=_generated_var_4@GRAD
attr dim INTS []
op select_output Mask=c0 X=_generated_var_4@GRAD -> Out=g3@GRAD,g2@GRAD
op conditional_block_grad Cond=l0 Input=y,x Out=g3 Out@GRAD=g3@GRAD Scope=g1 ->
  Input@GRAD=y@GRAD@RENAME@block0@0,x@GRAD@RENAME@block0@0
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 3
op conditional_block_grad Cond=c Input=y,x Out=g2 Out@GRAD=g2@GRAD Scope=g0 ->
  Input@GRAD=y@GRAD@RENAME@block0@1,x@GRAD@RENAME@block0@1
attr is_scalar_condition BOOLEAN true
attr sub_block BLOCK 4
op sum X=y@GRAD@RENAME@block0@0,y@GRAD@RENAME@block0@1 -> Out=y@GRAD
op sum X=x@GRAD@RENAME@block0@0,x@GRAD@RENAME@block0@1 -> Out=x@GRAD
block 1 0
op elementwise_mul X=x Y=y -> Out=tmp_2
op assign X=tmp_2 -> Out=g2
block 2 0
op elementwise_sub X=x Y=y -> Out=tmp_3
op assign X=tmp_3 -> Out=g3
block 3 0
var x@GRAD dense float32
var y@GRAD dense float32
op assign X=g3@GRAD -> Out=tmp_3@GRAD
op elementwise_sub_grad Out@GRAD=tmp_3@GRAD X=x Y=y -> X@GRAD=x@GRAD Y@GRAD=y@GRAD
block 4 0
var x@GRAD dense float32
var y@GRAD dense float32
op assign X=g2@GRAD -> Out=tmp_2@GRAD
op elementwise_mul_grad Out@GRAD=tmp_2@GRAD X=x Y=y -> X@GRAD=x@GRAD Y@GRAD=y@GRAD
out _generated_var_4 float32 [2] -1.04 -1.1500001
out x@GRAD float32 [2] 1 1
out y@GRAD float32 [2] -1 -1
)")

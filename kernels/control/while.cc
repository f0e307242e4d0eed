// while and its gradient. Going forward, each step leaves a record of what the gradient block
// reads: carried variables as they were before the step, the step's own variables as they were
// after it.
#include "core/op_context.h"
#include "kernels/control/steps.h"

namespace heddle {
namespace {

Status While(KernelContext& ctx) {
  const BlockRef body = ctx.Attr<BlockRef>("sub_block");
  Value* scopes = ctx.Bool("is_test") ? nullptr : ctx.OutVar("StepScopes");
  StepRecord* steps = scopes != nullptr ? &StepsIn(*scopes) : nullptr;
  if (steps != nullptr) steps->Clear();
  const bool arrays = ctx.InCount("sub_block:arrays") > 0;
  const bool may_end = ctx.InVar("sub_block:changing(Condition)") != nullptr;
  const Value* go_on = ctx.InVar("Condition");
  if (go_on == nullptr || !go_on->is_tensor()) return InvalidArgument("'Condition' is no tensor");
  for (bool first = true;; first = false) {
    const Tensor& condition = go_on->tensor();
    if (!condition.initialized() || condition.dtype() != DType::kBool || condition.numel() != 1)
      return InvalidArgument("'Condition' must be one bool; it is ", Name(condition.dtype()), " ",
                             condition.shape().ToString());
    if (!*condition.data<bool>()) return Status::Ok();
    if (!first && !may_end)
      return InvalidArgument("never ends: no step changes what 'Condition' depends on");
    if (arrays) ClearArrays(ctx, "sub_block:arrays");
    if (steps != nullptr) TakeValues(ctx, "sub_block:carried", &steps->Add());
    HEDDLE_RETURN_IF_ERROR(ctx.RunBlock(body));
    if (steps != nullptr) TakeValues(ctx, "sub_block:kept", &steps->back());
  }
}

// The kernel writes the record of steps alone; all else the body writes.
Status BodyWrites(ShapeContext&) { return Status::Ok(); }

// The loop's gradients on their way back through the steps.
class GradLoop {
 public:
  // `room`: an empty list to work with.
  GradLoop(const KernelContext& ctx, StepValues& room) : ctx_(ctx), out_grads_(room) {
    for (int i = 0; i < ctx.InCount("Out@GRAD"); ++i) {
      const Value* outside = ctx.InVar("Out@GRAD", i);
      const Value* forward = ctx.InVar("sub_block:primal(Out@GRAD)", i);
      out_grads_.push_back(outside != nullptr ? *outside : Value());
      if (!out_grads_.back().initialized() && forward != nullptr)
        ZeroLike(ctx, *forward, &out_grads_.back());
    }
    for (int i = 0; i < ctx.OutCount("X@GRAD"); ++i)
      if (Value* out = ctx.OutVar("X@GRAD", i); out != nullptr && CarriedBy(i) < 0) out->Clear();
  }

  Status Step(StepValues& values) {
    PutValues(ctx_, "sub_block:kept", values, PutValues(ctx_, "sub_block:carried", values, 0));
    ClearArrays(ctx_, "sub_block:arrays");
    for (size_t i = 0; i < out_grads_.size(); ++i)
      if (Value* v = ctx_.OutVar("sub_block:local(original_output_grad)", static_cast<int>(i)))
        *v = out_grads_[i];
    HEDDLE_RETURN_IF_ERROR(ctx_.RunBlock(ctx_.Attr<BlockRef>("sub_block")));
    for (int i = 0; i < ctx_.OutCount("X@GRAD"); ++i)
      if (ctx_.OutVar("X@GRAD", i) != nullptr) HEDDLE_RETURN_IF_ERROR(Collect(i));
    return Status::Ok();
  }

  Status Finish() {
    for (int i = 0; i < ctx_.OutCount("X@GRAD"); ++i) {
      Value* out = ctx_.OutVar("X@GRAD", i);
      if (out == nullptr) continue;
      const Value* x = ctx_.InVar("X", i);
      if (const int k = CarriedBy(i); k >= 0)
        *out = out_grads_[static_cast<size_t>(k)];
      else if (x != nullptr && !out->initialized())
        ZeroLike(ctx_, *x, out);
      if (x != nullptr) HEDDLE_RETURN_IF_ERROR(TakeShape(*x, i, out));
    }
    return Status::Ok();
  }

 private:
  // The output gradient that the gradient of input `i` goes on as; -1 when it adds up instead.
  int CarriedBy(int i) const {
    const Value* inside = ctx_.InVar("sub_block:X@GRAD", i);
    for (int k = 0; k < ctx_.InCount("sub_block:Out@GRAD") && inside != nullptr; ++k)
      if (ctx_.InVar("sub_block:Out@GRAD", k) == inside) return k;
    return -1;
  }

  // A gradient has the shape of its input.
  static Status TakeShape(const Value& x, int i, Value* gradient) {
    if (!x.is_tensor() || !gradient->is_tensor() || !x.tensor().initialized() ||
        !gradient->initialized())
      return Status::Ok();
    Tensor& t = gradient->tensor();
    if (t.dtype() != x.tensor().dtype() || t.numel() != x.tensor().numel())
      return InvalidArgument("the gradient of input 'X' [", i, "] is ", Name(t.dtype()), " ",
                             t.shape().ToString(), ", the input is ", Name(x.tensor().dtype()), " ",
                             x.tensor().shape().ToString());
    t.SetMeta(t.dtype(), x.tensor().shape());
    return Status::Ok();
  }

  Status Collect(int i) {
    if (const int k = CarriedBy(i); k >= 0) {
      const Value* inside = ctx_.InVar("sub_block:X@GRAD", i);
      if (inside->initialized()) out_grads_[static_cast<size_t>(k)] = *inside;
      return Status::Ok();
    }
    const Value* inside = ctx_.InVar("sub_block:grad(X)", i);
    if (inside == nullptr) return NotFound("the block makes no gradient of input 'X' [", i, "]");
    return Accumulate(ctx_, *inside, ctx_.OutVar("X@GRAD", i));
  }

  const KernelContext& ctx_;
  StepValues& out_grads_;
};

Status WhileGrad(KernelContext& ctx) {
  Value* scopes = ctx.InVar("StepScopes");
  if (scopes == nullptr) return InvalidArgument("'StepScopes' names no variable");
  StepRecord& steps = StepsIn(*scopes);
  // Operators behind this one must find the variables as the loop left them.
  StepValues& after = steps.work(0);
  TakeValues(ctx, "sub_block:carried", &after);
  TakeValues(ctx, "sub_block:kept", &after);
  GradLoop loop(ctx, steps.work(1));
  Status status;
  for (; steps.size() > 0 && status.ok(); steps.DropLast()) status = loop.Step(steps.back());
  PutValues(ctx, "sub_block:kept", after, PutValues(ctx, "sub_block:carried", after, 0));
  if (status.ok()) status = loop.Finish();
  steps.Clear();
  return status;
}

// Inside, the gradients of the outputs are what comes from outside, or zeros like the outputs.
Status GradShapes(ShapeContext& ctx) {
  bool told = true;
  for (int i = 0; i < ctx.InCount("Out@GRAD"); ++i) {
    constexpr Key kInside = "sub_block:local(original_output_grad)";
    if (i >= ctx.OutCount(kInside) || !ctx.HasOut(kInside, i)) continue;
    const bool outside = ctx.InVar("Out@GRAD", i) != nullptr;
    const Key like = outside ? Key("Out@GRAD") : Key("sub_block:primal(Out@GRAD)");
    if (i < ctx.InCount(like) && ctx.InVar(like, i) != nullptr && ctx.HasIn(like, i) &&
        ctx.InShape(like, i).is_static())
      ctx.SetOut(kInside, ctx.InShape(like, i), ctx.InDType(like, i), i);
    else
      told = false;
  }
  for (int i = 0; i < ctx.OutCount("X@GRAD"); ++i) {
    if (!ctx.HasOut("X@GRAD", i)) continue;
    if (ctx.InVar("X", i) != nullptr && ctx.HasIn("X", i) && ctx.InShape("X", i).is_static())
      ctx.SetOut("X@GRAD", ctx.InShape("X", i), ctx.InDType("X", i), i);
    else
      told = false;
  }
  return told ? Status::Ok() : ctx.Defer();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(while) {
  op.Doc("Runs sub_block again and again while Condition, which the block updates, is true.")
      .Input("X", kList | kOptional)
      .Input("Condition")
      .Input("sub_block:changing(Condition)", kOptional)
      .Input("sub_block:carried", kList | kOptional)
      .Input("sub_block:kept", kList | kOptional)
      .Input("sub_block:arrays", kList | kOptional)
      .Output("Out", kList | kOptional)
      .Output("StepScopes", kOptional | kRecord)
      .Attr("sub_block", BlockRef{})
      .Attr("is_test", false)
      .Traits(kControlFlow)
      .InferShape(BodyWrites)
      .AnyKernel(While);
}
HEDDLE_OP(while_grad) {
  op.Doc("Runs the gradient block sub_block for each step of a while, last step first.")
      .Input("X", kList | kOptional)
      .Input("Out", kList | kOptional)
      .Input("Out@GRAD", kList | kOptional)
      .Input("StepScopes", kRecord)
      .Input("sub_block:primal(Out@GRAD)", kList | kOptional)
      .Input("sub_block:Out@GRAD", kList | kOptional)
      .Input("sub_block:carried", kList | kOptional)
      .Input("sub_block:kept", kList | kOptional)
      .Input("sub_block:arrays", kList | kOptional)
      .Input("sub_block:grad(X)", kList | kOptional)
      .Input("sub_block:X@GRAD", kList | kOptional)
      .Output("X@GRAD", kList | kOptional)
      .Output("sub_block:local(original_output_grad)", kList | kOptional)
      .Attr("sub_block", BlockRef{})
      .Attr("original_output_grad", Strings{})
      .Attr("is_test", false)
      .Traits(kControlFlow)
      .InferShape(GradShapes)
      .AnyKernel(WhileGrad);
}

HEDDLE_EXAMPLES(while, R"(
example three times
in i int64 [1] 0
in n int64 [1] 3
in go bool [1] 1
in x float32 [2] 1 -0.5
var scopes step_scopes
op while X=i,n,x Condition=go -> Out=i,x,go StepScopes=scopes
attr sub_block BLOCK 1
attr is_test BOOLEAN true
out x float32 [2] 9.75 -2.25
out i int64 [1] 3
block 1 0
op scale X=x -> Out=x
attr scale FLOAT 2
attr bias FLOAT 0.25
op increment X=i -> Out=i
attr step FLOAT 1
op less_than X=i Y=n -> Out=go

example not once
in i int64 [1] 0
in n int64 [1] 3
in go bool [1] 0
in x float32 [2] 1 -0.5
var scopes step_scopes
op while X=i,n,x Condition=go -> Out=i,x,go StepScopes=scopes
attr sub_block BLOCK 1
attr is_test BOOLEAN true
out x float32 [2] 1 -0.5
out i int64 [1] 0
block 1 0
op scale X=x -> Out=x
attr scale FLOAT 2
attr bias FLOAT 0.25
op increment X=i -> Out=i
attr step FLOAT 1
op less_than X=i Y=n -> Out=go

example keeps its scopes
in i int64 [1] 0
in n int64 [1] 2
in go bool [1] 1
in x float32 [2] 1 -0.5
var scopes step_scopes
op while X=i,n,x Condition=go -> Out=i,x,go StepScopes=scopes
attr sub_block BLOCK 1
out x float32 [2] 4.75 -1.25
out i int64 [1] 2
block 1 0
op scale X=x -> Out=x
attr scale FLOAT 2
attr bias FLOAT 0.25
op increment X=i -> Out=i
attr step FLOAT 1
op less_than X=i Y=n -> Out=go
)")

HEDDLE_EXAMPLES(while_grad, R"(
example tanh of a product, twice
in x float32 [2] 0.92 0.33
in y float32 [2] 0.21 -0.1
var g0 step_scopes
op fill_constant -> Out=f0
attr dtype INT 3
attr shape LONGS [1]
attr str_value STRING "0"
op fill_constant -> Out=f1
attr dtype INT 3
attr shape LONGS [1]
attr str_value STRING "2"
attr value FLOAT 2.0
op scale X=x -> Out=tmp_1
op less_than X=f0 Y=f1 -> Out=tmp_2
op while Condition=tmp_2 X=y,tmp_1,f1,f0 -> Out=f0,tmp_1,tmp_2 StepScopes=g0
attr is_test BOOLEAN false
attr sub_block BLOCK 1
op reduce_sum X=tmp_1 -> Out=s0
attr dim INTS []
op fill_any_like X=s0 -> Out=s0@GRAD
attr dtype INT 5
attr value FLOAT 1.0
op reduce_sum_grad Out@GRAD=s0@GRAD X=tmp_1 -> X@GRAD=tmp_1@GRAD
attr dim INTS []
op while_grad Out=f0,tmp_1,tmp_2 Out@GRAD=tmp_1@GRAD StepScopes=g0 X=y,tmp_1,f1,f0 ->
  X@GRAD=y@GRAD,tmp_1@GRAD,@EMPTY@,@EMPTY@
attr is_test BOOLEAN false
attr original_output_grad STRINGS ["tmp_1@GRAD"]
attr sub_block BLOCK 2
op scale X=tmp_1@GRAD -> Out=x@GRAD
block 1 0
var t0 dense float32
op scale X=f0 -> Out=tmp_3
attr bias FLOAT 1.0
op elementwise_mul X=tmp_1 Y=y -> Out=tmp_4
op tanh X=tmp_4 -> Out=t0
op less_than X=tmp_3 Y=f1 -> Out=tmp_5
op assign X=tmp_3 -> Out=f0
op assign X=t0 -> Out=tmp_1
op assign X=tmp_5 -> Out=tmp_2
block 2 0 1
var y@GRAD dense float32
op assign X=tmp_1@GRAD -> Out=t0@GRAD
op tanh_grad Out=t0 Out@GRAD=t0@GRAD -> X@GRAD=tmp_4@GRAD
op elementwise_mul_grad Out@GRAD=tmp_4@GRAD X=tmp_1 Y=y -> X@GRAD=tmp_1@GRAD Y@GRAD=y@GRAD
out tmp_1 float32 [2] 0.040053178 0.0032987907
out x@GRAD float32 [2] 0.042425852 0.00998901
out y@GRAD float32 [2] 0.37639102 -0.0659514
)")

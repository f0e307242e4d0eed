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
  std::vector<StepValues>* steps = scopes != nullptr ? &StepsIn(*scopes) : nullptr;
  if (steps != nullptr) steps->clear();
  for (;;) {
    const Tensor& condition = ctx.In("Condition");
    if (!condition.initialized() || condition.dtype() != DType::kBool || condition.numel() != 1)
      return InvalidArgument("'Condition' must be one bool; it is ", Name(condition.dtype()), " ",
                             condition.shape().ToString());
    if (!*condition.data<bool>()) return Status::Ok();
    ClearArrays(ctx, "sub_block:arrays");
    StepValues now;
    if (steps != nullptr) TakeValues(ctx, "sub_block:carried", &now);
    HEDDLE_RETURN_IF_ERROR(ctx.RunBlock(body));
    if (steps == nullptr) continue;
    TakeValues(ctx, "sub_block:kept", &now);
    steps->push_back(std::move(now));
  }
}

// The loop's gradients on their way back through the steps.
class GradLoop {
 public:
  explicit GradLoop(const KernelContext& ctx) : ctx_(ctx) {
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

  Status Step(const StepValues& values) {
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

  void Finish() {
    for (int i = 0; i < ctx_.OutCount("X@GRAD"); ++i) {
      Value* out = ctx_.OutVar("X@GRAD", i);
      if (out == nullptr) continue;
      const Value* x = ctx_.InVar("X", i);
      if (const int k = CarriedBy(i); k >= 0)
        *out = out_grads_[static_cast<size_t>(k)];
      else if (x != nullptr && !out->initialized())
        ZeroLike(ctx_, *x, out);
    }
  }

 private:
  // The output gradient that the gradient of input `i` goes on as; -1 when it adds up instead.
  int CarriedBy(int i) const {
    const Value* inside = ctx_.InVar("sub_block:X@GRAD", i);
    for (int k = 0; k < ctx_.InCount("sub_block:Out@GRAD") && inside != nullptr; ++k)
      if (ctx_.InVar("sub_block:Out@GRAD", k) == inside) return k;
    return -1;
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
  std::vector<Value> out_grads_;
};

Status WhileGrad(KernelContext& ctx) {
  Value* scopes = ctx.InVar("StepScopes");
  if (scopes == nullptr) return InvalidArgument("'StepScopes' names no variable");
  std::vector<StepValues> steps = std::move(StepsIn(*scopes));
  scopes->Clear();
  // Operators behind this one must find the variables as the loop left them.
  StepValues after;
  TakeValues(ctx, "sub_block:carried", &after);
  TakeValues(ctx, "sub_block:kept", &after);
  GradLoop loop(ctx);
  Status status;
  for (; !steps.empty() && status.ok(); steps.pop_back()) status = loop.Step(steps.back());
  PutValues(ctx, "sub_block:kept", after, PutValues(ctx, "sub_block:carried", after, 0));
  if (status.ok()) loop.Finish();
  return status;
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(while) {
  op.Doc("Runs sub_block again and again while Condition, which the block updates, is true.")
      .Input("X", kList | kOptional)
      .Input("Condition")
      .Input("sub_block:carried", kList | kOptional)
      .Input("sub_block:kept", kList | kOptional)
      .Input("sub_block:arrays", kList | kOptional)
      .Output("Out", kList | kOptional)
      .Output("StepScopes", kOptional)
      .Attr("sub_block", BlockRef{})
      .Attr("is_test", false)
      .Traits(kControlFlow)
      .AnyKernel(While);
}
HEDDLE_OP(while_grad) {
  op.Doc("Runs the gradient block sub_block for each step of a while, last step first.")
      .Input("X", kList | kOptional)
      .Input("Out", kList | kOptional)
      .Input("Out@GRAD", kList | kOptional)
      .Input("StepScopes")
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
      .AnyKernel(WhileGrad);
}

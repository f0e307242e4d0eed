// while and its gradient. Going forward, each step leaves a record of what the gradient block
// reads: carried variables as they were before the step, the step's own variables as they were
// after it.
#include <utility>
#include <vector>

#include "core/kernel_context.h"
#include "core/shape_context.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/only_value.h"
#include "kernels/control/steps.h"

namespace heddle {
namespace {

Status While(KernelContext& ctx) {
  const StepContext slots(ctx);
  const BlockRef body = ctx.Attr<BlockRef>("sub_block");
  Value* scopes = ctx.Bool("is_test") ? nullptr : ctx.OutVar("StepScopes");
  StepRecord* steps = scopes != nullptr ? &StepsIn(*scopes) : nullptr;
  if (steps != nullptr) steps->Clear();
  const SlotVars carried = slots.Ins("sub_block:carried"), kept = slots.Ins("sub_block:kept");
  const SlotVars arrays = slots.Ins("sub_block:arrays");
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
    ClearArrays(arrays);
    if (steps != nullptr) TakeValues(carried, &steps->Add());
    HEDDLE_RETURN_IF_ERROR(ctx.RunBlock(body));
    if (steps != nullptr) TakeValues(kept, &steps->back());
  }
}

// The kernel writes the record of steps alone; all else the body writes.
Status BodyWrites(ShapeContext&) { return Status::Ok(); }

// The loop's gradients on their way back through the steps.
class GradLoop {
 public:
  // `room`: an empty list to work with.
  GradLoop(const KernelContext& ctx, const StepContext& slots, StepValues& room)
      : ctx_(ctx),
        body_(ctx.Attr<BlockRef>("sub_block")),
        x_(slots.Ins("X")),
        x_grads_(slots.Outs("X@GRAD")),
        given_(slots.Outs("sub_block:local(original_output_grad)")),
        insides_(slots.Ins("sub_block:grad(X)")),
        carried_(slots.Ins("sub_block:carried")),
        kept_(slots.Ins("sub_block:kept")),
        arrays_(slots.Ins("sub_block:arrays")),
        heap_(ctx),
        carried_by_(static_cast<size_t>(x_grads_.size()), -1, &heap_),
        carrying_(&heap_),
        out_grads_(room) {
    TakeGradients(slots);
    FindCarried(slots.Ins("sub_block:X@GRAD"), slots.Ins("sub_block:Out@GRAD"));
  }

  Status Step(StepValues& values) {
    PutValues(kept_, values, PutValues(carried_, values, 0));
    ClearArrays(arrays_);
    for (size_t k = 0; k < out_grads_.size(); ++k) {
      Value* given = given_[static_cast<int>(k)];
      if (given == nullptr) continue;
      if (carrying_[k] == nullptr)
        *given = out_grads_[k];
      else
        *given = std::exchange(out_grads_[k], Value());
    }
    HEDDLE_RETURN_IF_ERROR(ctx_.RunBlock(body_));
    for (size_t k = 0; k < out_grads_.size(); ++k)
      if (Value* inside = carrying_[k]) Carry(*inside, given_[static_cast<int>(k)], k);
    for (int i = 0; i < x_grads_.size(); ++i) {
      if (x_grads_[i] == nullptr || carried_by_[static_cast<size_t>(i)] >= 0) continue;
      Value* inside = insides_[i];
      if (inside == nullptr) return NotFound("the block makes no gradient of input 'X' [", i, "]");
      HEDDLE_RETURN_IF_ERROR(Accumulate(ctx_, *inside, x_grads_[i]));
    }
    return Status::Ok();
  }

  Status Finish() {
    for (int i = 0; i < x_grads_.size(); ++i) {
      Value* out = x_grads_[i];
      if (out == nullptr) continue;
      const Value* x = x_[i];
      if (const int k = carried_by_[static_cast<size_t>(i)]; k >= 0)
        *out = out_grads_[static_cast<size_t>(k)];
      else if (x != nullptr && !out->initialized())
        ZeroLike(ctx_, *x, out);
      if (x != nullptr) HEDDLE_RETURN_IF_ERROR(TakeShape(*x, i, out));
    }
    return Status::Ok();
  }

 private:
  // The gradient from outside; zeros if there is none.
  void TakeGradients(const StepContext& slots) {
    const SlotVars outside = slots.Ins("Out@GRAD");
    const SlotVars forward = slots.Ins("sub_block:primal(Out@GRAD)");
    for (int i = 0; i < outside.size(); ++i) {
      out_grads_.push_back(outside[i] != nullptr ? *outside[i] : Value());
      if (!out_grads_.back().initialized() && forward[i] != nullptr)
        ZeroLike(ctx_, *forward[i], &out_grads_.back());
    }
  }

  // The output gradients that gradients of inputs go on as; the others add up.
  void FindCarried(const SlotVars& inside_x, const SlotVars& inside_out) {
    carrying_.assign(out_grads_.size(), nullptr);
    for (int i = 0; i < x_grads_.size(); ++i) {
      if (x_grads_[i] == nullptr) continue;
      for (int k = 0; k < inside_out.size() && inside_x[i] != nullptr; ++k) {
        if (inside_out[k] != inside_x[i]) continue;
        carried_by_[static_cast<size_t>(i)] = k;
        carrying_[static_cast<size_t>(k)] = inside_x[i];
        break;
      }
      if (carried_by_[static_cast<size_t>(i)] < 0) x_grads_[i]->Clear();
    }
  }

  // The gradient that the step computed goes on; if it computed none, the one before.
  void Carry(Value& inside, Value* given, size_t k) {
    if (inside.initialized())
      out_grads_[k] = std::exchange(inside, Value());
    else if (given != nullptr)
      out_grads_[k] = std::exchange(*given, Value());
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

  const KernelContext& ctx_;
  const BlockRef body_;
  const SlotVars x_, x_grads_, given_, insides_, carried_, kept_, arrays_;
  CallHeap heap_;
  std::pmr::vector<int> carried_by_;   // per X@GRAD: the output gradient, or -1
  std::pmr::vector<Value*> carrying_;  // per output gradient: the block's variable, or nullptr
  StepValues& out_grads_;
};

Status WhileGrad(KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckOnlyValue(ctx, "is_test"));
  const StepContext slots(ctx);
  Value* scopes = ctx.InVar("StepScopes");
  if (scopes == nullptr) return InvalidArgument("'StepScopes' names no variable");
  StepRecord& steps = StepsIn(*scopes);
  const SlotVars carried = slots.Ins("sub_block:carried"), kept = slots.Ins("sub_block:kept");
  // Operators behind this one must find the variables as the loop left them.
  StepValues& after = steps.work(0);
  TakeValues(carried, &after);
  TakeValues(kept, &after);
  GradLoop loop(ctx, slots, steps.work(1));
  Status status;
  for (; steps.size() > 0 && status.ok(); steps.DropLast()) status = loop.Step(steps.back());
  PutValues(kept, after, PutValues(carried, after, 0));
  if (status.ok()) status = loop.Finish();
  steps.Clear();
  return status;
}

// Inside, the gradients of the outputs are what comes from outside, or zeros like the outputs.
Status WhileGradShapes(ShapeContext& ctx) {
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
      .InferShape(WhileGradShapes)
      .AnyKernel(WhileGrad);
}

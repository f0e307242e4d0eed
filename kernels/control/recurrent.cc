// recurrent: runs a block for each item of the first axis of its inputs and hands states from step
// to step; and its gradient.
#include "core/interrupts.h"
#include "core/kernel_context.h"
#include "core/shape_context.h"
#include "kernels/control/steps.h"

namespace heddle {
namespace {

Result<int64_t> StepCount(const KernelContext& ctx) {
  int64_t count = -1;
  for (int i = 0; i < ctx.InCount("inputs"); ++i) {
    const Tensor& x = ctx.In("inputs", i);
    if (!x.initialized() || x.rank() < 1) return InvalidArgument("'inputs' [", i, "] has no axis");
    if (count >= 0 && x.dim(0) != count)
      return InvalidArgument("'inputs' [", i, "] has ", x.dim(0), " steps, others have ", count);
    count = x.dim(0);
  }
  if (count < 0) return InvalidArgument("'inputs' names no variable");
  return count;
}

// The variables of slot `from` become those of slot `to`.
void Link(const KernelContext& ctx, Key from, Key to) {
  for (int i = 0; i < ctx.InCount(from) && i < ctx.OutCount(to); ++i) {
    const Value* v = ctx.InVar(from, i);
    if (Value* out = ctx.OutVar(to, i); v != nullptr && out != nullptr && out != v) *out = *v;
  }
}

// The variables of slot `to` become item `at` of those of slot `from`.
void LinkItems(const KernelContext& ctx, Key from, Key to, int64_t at) {
  for (int i = 0; i < ctx.InCount(from); ++i) {
    const Tensor* x = ctx.InOpt(from, i);
    if (Value* out = ctx.OutVar(to, i); x != nullptr && out != nullptr)
      out->MutableTensor() = Row(ctx, *x, at);
  }
}

// Item `at` of the operator's outputs becomes what the block's variables hold.
void CollectItems(const KernelContext& ctx, Key from, Key to, int64_t count, int64_t at) {
  for (int i = 0; i < ctx.OutCount(to); ++i) {
    const Tensor* row = ctx.InOpt(from, i);
    if (Value* out = ctx.OutVar(to, i); row != nullptr && out != nullptr)
      PutRow(ctx, *row, count, at, out);
  }
}

Status Recurrent(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, StepCount(ctx));
  Value* scopes = ctx.Bool("is_train") ? ctx.OutVar("step_scopes") : nullptr;
  StepRecord* steps = scopes != nullptr ? &StepsIn(*scopes) : nullptr;
  if (steps != nullptr) steps->Clear();
  for (const int64_t i : Watched(count)) {
    const int64_t at = ctx.Bool("reverse") ? count - 1 - i : i;
    ClearArrays(StepContext(ctx).Ins("sub_block:arrays"));
    LinkItems(ctx, "inputs", "sub_block:local(inputs)", at);
    if (ctx.Bool("has_states"))
      Link(ctx, i == 0 ? Key("initial_states") : Key("sub_block:states"), "sub_block:ex_states");
    HEDDLE_RETURN_IF_ERROR(ctx.RunBlock(ctx.Attr<BlockRef>("sub_block")));
    CollectItems(ctx, "sub_block:local(outputs)", "outputs", count, at);
    if (steps != nullptr) TakeValues(StepContext(ctx).Ins("sub_block:kept"), &steps->Add());
  }
  return Status::Ok();
}

// The number of steps, as far as it is known; -1 where it is not, or where there is none.
int64_t PlannedCount(const ShapeContext& ctx) {
  int64_t count = -1;
  for (int i = 0; i < ctx.InCount("inputs"); ++i) {
    const Shape& x = ctx.InShape("inputs", i);
    if (!x.is_static() || x.rank() < 1 || x[0] < 1 || (count >= 0 && x[0] != count)) return -1;
    count = x[0];
  }
  return count;
}

// The variables of slot `to` are items of those of slot `from`. False where one is not known.
bool ItemShapes(ShapeContext& ctx, Key from, Key to) {
  bool told = true;
  for (int i = 0; i < ctx.InCount(from) && i < ctx.OutCount(to); ++i) {
    if (!ctx.HasOut(to, i)) continue;
    const bool known = ctx.InVar(from, i) != nullptr && ctx.HasIn(from, i) &&
                       ctx.InShape(from, i).is_static() && ctx.InShape(from, i).rank() > 0;
    told = told && known;
    if (!known) continue;
    const Shape& x = ctx.InShape(from, i);
    ctx.SetOut(to, Shape(x.dims().subspan(1)), ctx.InDType(from, i), i);
  }
  return told;
}

// The variables of slot `to` have `count` of those of slot `from` as items; without a count, they
// are like them. False where one is not known.
bool WholeShapes(ShapeContext& ctx, Key from, Key to, int64_t count) {
  bool told = true;
  for (int i = 0; i < ctx.OutCount(to) && i < ctx.InCount(from); ++i) {
    if (!ctx.HasOut(to, i) || ctx.InVar(from, i) == nullptr) continue;
    // Before the block's shapes are inferred, what a step leaves is unknown.
    const bool known = ctx.HasIn(from, i) && ctx.InShape(from, i).is_static();
    told = told && (known || !ctx.HasIn(from, i));
    if (!known) continue;
    Shape whole = ctx.InShape(from, i);
    if (count > 0) whole.insert(0, count);
    ctx.SetOut(to, whole, ctx.InDType(from, i), i);
  }
  return told;
}

// A step's inputs are items of the operator's inputs, and the operator's outputs have the steps'
// outputs as items. A state keeps its first shape.
Status StepShapes(ShapeContext& ctx) {
  const int64_t count = PlannedCount(ctx);
  if (count < 1) return ctx.Defer();
  bool told = ItemShapes(ctx, "inputs", "sub_block:local(inputs)");
  const int states = ctx.Bool("has_states") ? ctx.OutCount("sub_block:ex_states") : 0;
  for (int i = 0; i < states; ++i) {
    if (!ctx.HasOut("sub_block:ex_states", i)) continue;
    const bool has_first = i < ctx.InCount("initial_states") && ctx.InVar("initial_states", i);
    const bool has_next = i < ctx.InCount("sub_block:states") && ctx.InVar("sub_block:states", i);
    if (!has_first || !has_next || !ctx.InShape("initial_states", i).is_static()) {
      told = false;
      continue;
    }
    // Before the block's shapes are inferred, the state that a step leaves is unknown.
    const bool next = ctx.HasIn("sub_block:states", i);
    const Key slot = next ? Key("sub_block:states") : Key("initial_states");
    const bool same = !next || (ctx.InShape(slot, i) == ctx.InShape("initial_states", i) &&
                                ctx.InDType(slot, i) == ctx.InDType("initial_states", i));
    if (same) ctx.SetOut("sub_block:ex_states", ctx.InShape(slot, i), ctx.InDType(slot, i), i);
    told = told && same;
  }
  told = WholeShapes(ctx, "sub_block:local(outputs)", "outputs", count) && told;
  return told ? Status::Ok() : ctx.Defer();
}

// Going back, a step's gradients are items of those of the outputs, and a state's gradient has the
// state's shape.
Status StepGradShapes(ShapeContext& ctx) {
  const int64_t count = PlannedCount(ctx);
  if (count < 1) return ctx.Defer();
  bool told = ItemShapes(ctx, "outputs@GRAD", "sub_block:local(outputs@GRAD)");
  const int states = ctx.Bool("has_states") ? ctx.OutCount("sub_block:grad(states)") : 0;
  for (int i = 0; i < states; ++i) {
    if (!ctx.HasOut("sub_block:grad(states)", i)) continue;
    const bool known = i < ctx.InCount("initial_states") && ctx.InVar("initial_states", i) &&
                       ctx.HasIn("initial_states", i) &&
                       ctx.InShape("initial_states", i).is_static();
    told = told && known;
    if (known)
      ctx.SetOut("sub_block:grad(states)", ctx.InShape("initial_states", i),
                 ctx.InDType("initial_states", i), i);
  }
  told = WholeShapes(ctx, "sub_block:grad(inputs)", "inputs@GRAD", count) && told;
  told = WholeShapes(ctx, "sub_block:grad(parameters)", "parameters@GRAD", 0) && told;
  told = WholeShapes(ctx, "sub_block:grad(ex_states)", "initial_states@GRAD", 0) && told;
  return told ? Status::Ok() : ctx.Defer();
}

// Nothing comes back to the states that the last step left.
void ClearStateGrads(const KernelContext& ctx) {
  for (int i = 0; i < ctx.OutCount("sub_block:grad(states)"); ++i) {
    Value* inside = ctx.OutVar("sub_block:grad(states)", i);
    if (inside == nullptr) continue;
    const Value* like =
        i < ctx.InCount("initial_states") ? ctx.InVar("initial_states", i) : nullptr;
    inside->Clear();
    if (like != nullptr) ZeroLike(ctx, *like, inside);
  }
}

Status StepGrad(const KernelContext& ctx, bool first, int64_t count, int64_t at) {
  ClearArrays(StepContext(ctx).Ins("sub_block:arrays"));
  LinkItems(ctx, "outputs@GRAD", "sub_block:local(outputs@GRAD)", at);
  if (!ctx.Bool("has_states") || first)
    ClearStateGrads(ctx);
  else
    Link(ctx, "sub_block:grad(ex_states)", "sub_block:grad(states)");
  HEDDLE_RETURN_IF_ERROR(ctx.RunBlock(ctx.Attr<BlockRef>("sub_block")));
  for (int i = 0; i < ctx.OutCount("parameters@GRAD"); ++i) {
    Value* outside = ctx.OutVar("parameters@GRAD", i);
    Value* inside = ctx.InVar("sub_block:grad(parameters)", i);
    if (outside != nullptr && inside != nullptr)
      HEDDLE_RETURN_IF_ERROR(Accumulate(ctx, *inside, outside));
  }
  CollectItems(ctx, "sub_block:grad(inputs)", "inputs@GRAD", count, at);
  return Status::Ok();
}

Status RecurrentGrad(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, StepCount(ctx));
  Value* scopes = ctx.InVar("step_scopes");
  if (scopes == nullptr) return InvalidArgument("'step_scopes' names no variable");
  StepRecord& steps = StepsIn(*scopes);
  if (static_cast<int64_t>(steps.size()) != count)
    return InvalidArgument("'step_scopes' holds ", steps.size(), " steps, the inputs have ", count);
  for (const Key slot : {Key("parameters@GRAD"), Key("inputs@GRAD")})
    for (int i = 0; i < ctx.OutCount(slot); ++i)
      if (Value* out = ctx.OutVar(slot, i)) out->Clear();
  for (const int64_t i : Watched(count)) {
    StepValues& values = steps[static_cast<size_t>(count - 1 - i)];
    PutValues(StepContext(ctx).Ins("sub_block:kept"), values, 0);
    values.clear();
    const int64_t at = ctx.Bool("reverse") ? i : count - 1 - i;
    HEDDLE_RETURN_IF_ERROR(StepGrad(ctx, i == 0, count, at));
  }
  for (int i = 0; i < ctx.OutCount("initial_states@GRAD") && count > 0; ++i) {
    const Value* inside = ctx.InVar("sub_block:grad(ex_states)", i);
    Value* out = ctx.OutVar("initial_states@GRAD", i);
    if (out != nullptr && inside != nullptr && inside->initialized()) *out = *inside;
  }
  steps.Clear();
  return Status::Ok();
}

void DefineRecurrent(OpDef& op) {
  op.Input("inputs", kList).Input("initial_states", kList | kOptional);
  op.Input("parameters", kList | kOptional).Input("sub_block:arrays", kList | kOptional);
  op.Attr("has_states", false).Attr("ex_states", Strings{}).Attr("states", Strings{});
  op.Attr("sub_block", BlockRef{}).Attr("reverse", false).Attr("is_train", true);
  op.Traits(kControlFlow);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(recurrent) {
  op.Doc("Runs sub_block for each item of the first axis of the inputs.");
  DefineRecurrent(op);
  op.Output("outputs", kList | kOptional).Output("step_scopes", kOptional | kRecord);
  op.Output("sub_block:local(inputs)", kList | kOptional);
  op.Input("sub_block:local(outputs)", kList | kOptional);
  op.Output("sub_block:ex_states", kList | kOptional).Input("sub_block:states", kList | kOptional);
  op.Input("sub_block:kept", kList | kOptional);
  op.InferShape(StepShapes).AnyKernel(Recurrent);
}

HEDDLE_OP(recurrent_grad) {
  DefineRecurrent(op);
  op.Input("outputs", kList | kOptional).Input("outputs@GRAD", kList | kOptional);
  op.Input("step_scopes", kRecord).Input("step_scopes@GRAD", kOptional | kRecord);
  op.Output("sub_block:local(outputs@GRAD)", kList | kOptional);
  op.Output("sub_block:grad(states)", kList | kOptional);
  op.Input("sub_block:kept", kList | kOptional);
  for (const char* of : {"inputs", "parameters", "ex_states"})
    op.Input(std::string("sub_block:grad(") + of + ")", kList | kOptional);
  for (const char* of : {"inputs@GRAD", "initial_states@GRAD", "parameters@GRAD"})
    op.Output(of, kList | kOptional);
  op.InferShape(StepGradShapes).AnyKernel(RecurrentGrad);
}

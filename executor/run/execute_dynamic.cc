// Executes instructions whose shapes are found at run time.
#include "core/error.h"
#include "core/kernel_context.h"
#include "core/kernel_selector.h"
#include "core/shape_context.h"
#include "executor/plan/var_attrs.h"
#include "executor/run/bare_value.h"
#include "executor/run/compare_claims.h"
#include "executor/run/interpreter.h"
#include "executor/run/place_outputs.h"

namespace heddle {
namespace {

// Before the kernel: if the operator may work in place, the hidden slot gets the variable's memory.
// After it: the variable gets the hidden slot's contents.
void BeginRewrites(const Instruction& in, Value* const* frame) {
  for (const auto& r : in.rewrites) {
    if (r.inplace)
      *frame[r.hidden] = *frame[r.real];
    else
      frame[r.hidden]->Clear();
  }
}
void EndRewrites(const Instruction& in, Value* const* frame) {
  for (const auto& r : in.rewrites) {
    if (!frame[r.hidden]->initialized()) continue;
    *frame[r.real] = std::move(*frame[r.hidden]);
    frame[r.hidden]->Clear();
  }
}

// Calls the shape function. `all`: it has set everything that the operator writes.
Status Infer(const BoundOp& op, RunState& run, RunState::OutMetas* outs, bool* all) {
  ShapeContext shapes(op, run.frame());
  outs->resize(op.out.size());
  for (ShapeContext::OutMeta& m : *outs) {
    m.set = m.has_lod = false;
    m.lod.clear();
  }
  shapes.outs().swap(*outs);
  const Status status = op.def->infer_shape()(shapes);
  shapes.outs().swap(*outs);
  *all = !shapes.deferred();
  return status;
}

// The prepared call, once the outputs have their shapes; nullptr if nothing is prepared. `told`:
// `outs` (nullptr without a shape function) may follow from the operands' dtypes and shapes alone.
Result<std::shared_ptr<const ShapedCall>> CallNow(const Instruction& in, const BoundOp& op,
                                                  RunState& run, bool told,
                                                  const RunState::OutMetas* outs, KernelFn fn) {
  const std::vector<bool>* const constant = &run.plan().constant;
  if (in.calls && told)
    return in.calls->FindOrPrepare(op, run.frame(), run.services(), constant, outs, fn);
  if (op.def->prepare() == nullptr) return std::shared_ptr<const ShapedCall>();
  return in.calls ? in.calls->FindOrPrepare(op, run.frame(), run.services(), constant)
                  : PrepareCall(op, run.frame(), run.services(), constant);
}

// Whether the outputs have the shapes that the plan expects.
bool AsTold(const Instruction& in, const RunState::OutMetas& outs, const Plan& plan) {
  for (size_t i = 0; i < in.op.out.size(); ++i) {
    if (in.op.out[i] == kNoSlot || !plan.slots[in.op.out[i]].is_static) continue;
    const Slot& slot = plan.slots[in.op.out[i]];
    if (i >= outs.size() || !outs[i].set || outs[i].has_lod || outs[i].dtype != slot.dtype ||
        !(outs[i].shape == slot.shape()))
      return false;
  }
  return true;
}

// Takes the memory of the input, which keeps only its shape until it is written again.
Tensor GiveUp(const Instruction& in, RunState& run) {
  Tensor& from = run.value(in.op.in[in.takeovers[0]]).tensor();
  Tensor had = std::move(from);
  from.Bind(static_cast<void*>(nullptr));
  return had;
}

// Keeps memory for the next contents of an empty tensor.
void KeepSpare(BufferRef memory, Tensor* t) {
  t->Bind(std::move(memory));
  t->Bind(static_cast<void*>(nullptr));
}

// If the output is a copy of an input that is not used afterwards, it takes over the input's
// memory.
bool TakeOver(const Instruction& in, const RunState::OutMetas& outs, RunState& run) {
  if (in.takeovers.empty() || in.appends) return false;
  const Tensor& from = run.value(in.op.in[in.takeovers[0]]).tensor();
  const ShapeContext::OutMeta& to = outs[in.takeovers[1]];
  if (!to.set || to.has_lod || to.dtype != from.dtype() || !to.shape.is_static() ||
      to.shape.numel() != from.numel() || !from.buffer() || !from.buffer()->unique() ||
      !from.is_contiguous())
    return false;
  Tensor& out = run.value(in.op.out[in.takeovers[1]]).MutableTensor();
  // In a loop, the memory that this output replaces fits the next iteration's input: the two
  // exchange their memory.
  BufferRef spare;
  if (in.ir_block != 0 && out.shape() == to.shape && out.dtype() == to.dtype && out.buffer() &&
      out.buffer()->unique())
    spare = out.buffer();
  out = GiveUp(in, run);
  out.SetMeta(to.dtype, to.shape);
  if (spare) KeepSpare(std::move(spare), &run.value(in.op.in[in.takeovers[0]]).tensor());
  return true;
}

// If the output begins with an input that is not used afterwards, and the input's memory has room
// for it, the output is made in that memory: the kernel finds the input in its place.
bool Append(const Instruction& in, const RunState::OutMetas& outs, RunState& run) {
  if (!in.appends) return false;
  const Tensor& from = run.value(in.op.in[in.takeovers[0]]).tensor();
  const ShapeContext::OutMeta& to = outs[in.takeovers[1]];
  const BufferRef& memory = from.buffer();
  if (!to.set || to.has_lod || to.dtype != from.dtype() || !to.shape.is_static() || !memory ||
      !memory->unique() || from.raw() != memory->data() || !from.is_contiguous() ||
      memory->bytes() < BytesFor(to.dtype, to.shape))
    return false;
  auto axis = static_cast<int>(OpContext(in.op, run.frame()).Int("axis"));
  if (axis < 0) axis += to.shape.rank();
  if (to.shape.Product(0, axis) != 1) return false;
  run.value(in.op.out[in.takeovers[1]]) = Tensor(to.dtype, to.shape, memory);
  return true;
}

// To be called when the outputs have been written.
Status Done(const Instruction& in, RunState& run) {
  return in.claims ? CompareClaims(in, run) : Status::Ok();
}

// Gives outputs memory as PlaceOutputs does. It has done so for this call before, and found nothing
// wrong with the shapes.
Status PlaceAgain(const Instruction& in, const ShapedCall& call, RunState& run) {
  if (!in.calls->makes_tensors || call.bytes.empty()) return PlaceOutputs(in, call.outs, true, run);
  for (size_t i = 0; i < call.outs.size(); ++i)
    if (in.op.out[i] != kNoSlot)
      Provide(in.op.out[i], call.outs[i].dtype, call.outs[i].shape, call.bytes[i], run);
  return Status::Ok();
}

// Executes a call whose operands have the same shapes as last time.
Status CallAgain(const Instruction& in, const ShapedCall& call, RunState& run) {
  if (TakeOver(in, call.outs, run)) return Done(in, run);
  const bool appended = Append(in, call.outs, run);
  if (!appended) HEDDLE_RETURN_IF_ERROR(PlaceAgain(in, call, run));
  KernelContext ctx(in.op, run.frame(), run.services(), call.state.get());
  HEDDLE_RETURN_IF_ERROR(call.fn(ctx));
  if (appended) GiveUp(in, run);
  return Done(in, run);
}

}  // namespace

Status Interpreter::ExecuteDynamic(const Instruction& in, RunState& run, RunControl::Watch* watch) {
  Value* const* frame = run.frame();
  const OpDef& def = *in.op.def;
  CallMemo* const memo = in.calls ? &run.MemoOf(*in.calls) : nullptr;
  const ShapedCall* call = memo != nullptr ? memo->Next(in.op, frame) : nullptr;
  if (call != nullptr && watch == nullptr && in.rewrites.empty() && def.infer_shape() != nullptr)
    return CallAgain(in, *call, run);
  BoundOp with_attrs;
  std::vector<AttrValue> attrs;
  if (!in.var_attrs.empty()) {
    with_attrs = in.op;
    HEDDLE_RETURN_IF_ERROR(ReadVarAttrs(in.var_attrs.vector(), frame, &with_attrs, &attrs));
  }
  const BoundOp& op = in.var_attrs.empty() ? in.op : with_attrs;
  const bool plain = call != nullptr || ArePlain(in.op, frame);
  if (!plain) HEDDLE_RETURN_IF_ERROR(CheckOperands(in.op, frame));
  BeginRewrites(in, frame);
  ForgetOutputs(in, run);
  if (watch != nullptr) watch->infer_begin = Ticks();
  std::shared_ptr<const ShapedCall> kept;
  if (call == nullptr && memo != nullptr && plain) {
    kept = in.calls->Find(op, frame);
    call = kept.get();
    memo->Put(kept, in.calls->most());
  }
  const bool known = call != nullptr;
  std::unique_ptr<RunState::OutMetas> outs;
  bool all = true, taken = false, appended = false;
  if (known) {
    taken = TakeOver(in, call->outs, run);
    appended = Append(in, call->outs, run);
    if (!taken && !appended) HEDDLE_RETURN_IF_ERROR(PlaceOutputs(in, call->outs, all, run));
  } else if (def.infer_shape() != nullptr && !def.has(kControlFlow)) {
    outs = run.TakeOutMetas();
    HEDDLE_RETURN_IF_ERROR(Infer(op, run, outs.get(), &all));
    if (in.told && !AsTold(in, *outs, run.plan())) {
      run.plan().misjudged->store(true, std::memory_order_relaxed);
      return Internal("makes another shape than the plan was told");
    }
    appended = plain && all && Append(in, *outs, run);
    if (!appended) HEDDLE_RETURN_IF_ERROR(PlaceOutputs(in, *outs, all, run));
  }
  if (watch != nullptr) watch->infer_end = Ticks();
  for (int block : in.loops) run.BeginLoop(block);
  KernelFn fn = known ? call->fn : in.fn;
  if (fn == nullptr) HEDDLE_RETURN_IF_ERROR(SelectKernel(in.op, frame, &fn));
  if (!known) {
    HEDDLE_ASSIGN_OR_RETURN(kept, CallNow(in, op, run, plain && all, outs.get(), fn));
    call = kept.get();
    if (memo != nullptr && plain) memo->Put(kept, in.calls->most());
  }
  if (outs) run.GiveBackOutMetas(std::move(outs));
  if (taken) {
    if (watch != nullptr) watch->compute_begin = Ticks();
    return Done(in, run);
  }
  KernelContext ctx(op, frame, run.services(), call != nullptr ? call->state.get() : nullptr);
  if (watch != nullptr) watch->compute_begin = Ticks();
  HEDDLE_RETURN_IF_ERROR(fn(ctx));
  if (appended) GiveUp(in, run);
  EndRewrites(in, frame);
  return Done(in, run);
}

}  // namespace heddle

#include "executor/run/place_outputs.h"

#include "core/error.h"
#include "core/operands/slot_kinds.h"
#include "core/shape_context.h"
#include "executor/plan/shapes/empty_dims.h"
#include "executor/plan/shapes/instruction_facts.h"

namespace heddle {

bool IsOperand(const IdList& list, uint32_t slot) {
  for (uint32_t s : list)
    if (s == slot) return true;
  return false;
}

void Provide(uint32_t slot, DType dtype, const Shape& shape, RunState& run) {
  Provide(slot, dtype, shape, BytesFor(dtype, shape), run);
}

void Provide(uint32_t slot, DType dtype, const Shape& shape, size_t bytes, RunState& run) {
  Tensor& t = run.value(slot).MutableTensor();
  const BufferRef& b = t.buffer();
  const bool spare = t.raw() == nullptr;  // the memory was kept for the next contents
  if (b && b->unique() && b->bytes() >= bytes && (spare || t.raw() == b->data())) {
    if (spare) t.Bind(b->data());
    t.SetMeta(dtype, shape);
    if (t.has_lod()) t.ClearLod();
  } else {
    t = Tensor(dtype, shape, run.TakeMemory(slot, bytes));
  }
}

namespace {

// Checks that an operator keeps the shape of a variable that it rewrites, if the plan relies on it.
Status CheckRewrites(const Instruction& in, const std::vector<ShapeContext::OutMeta>& outs,
                     const Plan& plan) {
  for (size_t i = 0; !in.rewrites.empty() && i < outs.size(); ++i) {
    const Instruction::Rewrite* r = outs[i].set ? RewriteOf(in, in.op.out[i]) : nullptr;
    if (r == nullptr) continue;
    const Slot& real = plan.slots[r->real];
    if (real.is_static && !(outs[i].shape == real.shape() && outs[i].dtype == real.dtype))
      return InvalidArgument("would turn variable '", plan.program->vars[real.var].name, "' from ",
                             Name(real.dtype), " ", real.shape().ToString(), " into ",
                             Name(outs[i].dtype), " ", outs[i].shape.ToString());
  }
  return Status::Ok();
}

// Empties an output that the operator will not write, whatever an earlier run or iteration left in
// its variable. (A variable of the scope keeps its value.)
void Forget(const Instruction& in, uint32_t slot, RunState& run) {
  if (run.plan().slots[slot].storage == Storage::kScope) return;
  Value& v = run.value(slot);
  if (v.is_tensor() && v.tensor().initialized() && !IsOperand(in.op.in, slot)) v = Value();
}

// Gives an output its inferred shape. The output of an in-place rewrite keeps the variable's memory
// if shape and dtype stay the same; any other output gets memory that is not read any more.
void PlaceOutput(const Instruction& in, uint32_t slot, const ShapeContext::OutMeta& meta,
                 RunState& run) {
  Value& v = run.value(slot);
  const bool rewrite = RewriteOf(in, slot) != nullptr;
  if (rewrite && v.is_tensor() && v.tensor().initialized()) {
    if (v.tensor().dtype() == meta.dtype && v.tensor().shape() == meta.shape) return;
    v.Clear();
  }
  if (!rewrite && IsOperand(in.op.in, slot)) return;  // an array, which the kernel updates
  Provide(slot, meta.dtype, meta.shape, run);
  if (meta.has_lod) v.tensor().set_lod(meta.lod);
}

bool IsArray(uint32_t slot, const Plan& plan) {
  const ir::VarId v = plan.slots[slot].var;
  return v != ir::kNoVar && plan.program->vars[v].kind == ir::VarKind::kArray;
}

// An error if the kernel writes a tensor to output `i`, whose variable is declared as an array.
// Programs that declare all their variables are checked when they are made
// (core/programs/op_check.h).
Status CheckMakesArray(const BoundOp& op, size_t i, const RunState& run) {
  const auto& slots = op.def->outputs();
  size_t s = 0;
  while (s + 1 < slots.size() && op.out_begin[s + 1] <= i) ++s;
  bool makes = (slots[s].flags & kTakesNoTensor) != 0;
  for (uint32_t k : op.in) makes = makes || (k != kNoSlot && run.frame()[k]->is_array());
  if (makes && (slots[s].flags & kTakesArray) != 0) return Status::Ok();
  return InvalidArgument("output '", slots[s].name, "' is a tensor, but its variable '",
                         run.plan().program->vars[run.plan().slots[op.out[i]].var].name,
                         "' is declared as a tensor array");
}

}  // namespace

void ForgetOutputs(const Instruction& in, RunState& run) {
  if (in.op.def->infer_shape() != nullptr || in.op.def->has(kControlFlow)) return;
  for (uint32_t slot : in.op.out)
    if (slot != kNoSlot && in.rewrites.empty()) Forget(in, slot, run);
}

Status PlaceOutputs(const Instruction& in, const RunState::OutMetas& outs, bool all,
                    RunState& run) {
  HEDDLE_RETURN_IF_ERROR(CheckRewrites(in, outs, run.plan()));
  for (size_t i = 0; i < outs.size(); ++i) {
    if (in.op.out[i] == kNoSlot) continue;
    if (IsArray(in.op.out[i], run.plan())) {
      if (outs[i].set) HEDDLE_RETURN_IF_ERROR(CheckMakesArray(in.op, i, run));
      continue;
    }
    if (outs[i].set) HEDDLE_RETURN_IF_ERROR(CheckEmptyDims(outs[i].shape));
    // For an output of unknown size the kernel itself takes memory.
    if (outs[i].set && outs[i].shape.is_static())
      PlaceOutput(in, in.op.out[i], outs[i], run);
    else if (all)
      Forget(in, in.op.out[i], run);
  }
  return Status::Ok();
}

}  // namespace heddle

#include "executor/run/compare_claims.h"

#include "core/error.h"

namespace heddle {
namespace {

bool Holds(const ir::Var& said, const Tensor& is) {
  if (said.dtype != DType::kUnknown && said.dtype != is.dtype()) return false;
  if (!said.shape.known_rank()) return true;
  if (said.shape.rank() != is.rank()) return false;
  for (int i = 0; i < is.rank(); ++i)
    if (said.shape[i] >= 0 && said.shape[i] != is.dim(i)) return false;
  return true;
}

Status Compare(uint32_t slot, RunState& run) {
  if (slot == kNoSlot) return Status::Ok();
  const Plan& plan = run.plan();
  const ir::VarId v = plan.slots[slot].var;
  if (v == ir::kNoVar || !(*plan.claimed)[v]) return Status::Ok();
  const Value& value = run.value(slot);
  if (!value.is_tensor() || !value.tensor().initialized()) return Status::Ok();
  const ir::Var& var = plan.program->vars[v];
  const Tensor& is = value.tensor();
  if (Holds(var, is)) return Status::Ok();
  run.NoteOtherwise(v);
  return InvalidArgument("variable '", var.name, "' is ", Name(is.dtype()), " ",
                         is.shape().ToString(), ", but declared as ", Name(var.dtype), " ",
                         var.shape.ToString());
}

}  // namespace

Status CompareClaims(const Instruction& in, RunState& run) {
  for (const uint32_t s : in.op.out) HEDDLE_RETURN_IF_ERROR(Compare(s, run));
  for (const auto& r : in.rewrites) HEDDLE_RETURN_IF_ERROR(Compare(r.real, run));
  return Status::Ok();
}

}  // namespace heddle

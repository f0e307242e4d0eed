#include "executor/plan/shapes/instruction_facts.h"

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "core/shape_context.h"
#include "executor/plan/shapes/empty_dims.h"
#include "executor/plan/var_attrs.h"

namespace heddle {

std::vector<bool> FindRequired(const Plan& plan) {
  std::vector<bool> required(plan.slots.size(), false);
  for (const BlockPlan& block : plan.blocks)
    for (const Instruction& in : block.instructions)
      for (size_t i = 0; i < in.op.def->inputs().size(); ++i) {
        if (in.op.def->inputs()[i].flags & kOptional) continue;
        for (uint32_t k = in.op.in_begin[i]; k < in.op.in_begin[i + 1]; ++k)
          if (in.op.in[k] != kNoSlot) required[in.op.in[k]] = true;
      }
  return required;
}

bool OfAnyKind(const std::vector<SlotDef>& slots, const IdList& begin, size_t operand) {
  for (size_t i = 0; i < slots.size(); ++i)
    if (operand < begin[i + 1]) return (slots[i].flags & kAnyKind) != 0;
  return false;
}

bool HasRecord(const std::vector<SlotDef>& slots) {
  return std::any_of(slots.begin(), slots.end(),
                     [](const SlotDef& slot) { return (slot.flags & kRecord) != 0; });
}

const Instruction::Rewrite* RewriteOf(const Instruction& in, uint32_t slot) {
  const auto* const at = std::lower_bound(
      in.rewrites.begin(), in.rewrites.end(), slot,
      [](const Instruction::Rewrite& r, uint32_t hidden) { return r.hidden < hidden; });
  return at != in.rewrites.end() && at->hidden == slot ? at : nullptr;
}

Status CheckSizes(const std::vector<ShapeContext::OutMeta>& outs) {
  for (const auto& out : outs) {
    if (!out.set || !out.shape.is_static()) continue;
    HEDDLE_RETURN_IF_ERROR(CheckEmptyDims(out.shape));
    if (BytesFor(out.dtype, out.shape) >= kImpossibleBytes)
      return ResourceExhausted("out of memory: an output of ", Name(out.dtype), " ",
                               out.shape.ToString(), " is larger than any memory");
  }
  return Status::Ok();
}

Status FixVarAttrs(const PlanDraft& draft, Instruction* in) {
  if (in->var_attrs.empty()) return Status::Ok();
  const size_t slots = in->op.def->inputs().size();
  for (size_t k = in->op.in_begin[slots]; k < in->op.in.size(); ++k)
    if (in->op.in[k] != kNoSlot && !draft.frame[in->op.in[k]]->initialized()) return Status::Ok();
  in->fixed_attrs = std::make_unique<std::vector<AttrValue>>();
  HEDDLE_RETURN_IF_ERROR(
      ReadVarAttrs(in->var_attrs.vector(), draft.frame.data(), &in->op, in->fixed_attrs.get()));
  in->var_attrs.clear();
  in->op.in_begin.resize(slots + 1);
  in->op.in.resize(in->op.in_begin.back());
  return Status::Ok();
}

std::vector<uint32_t> KnownIn(const PlanDraft& d, const Instruction& in, std::string_view input) {
  std::vector<uint32_t> known;
  const int at = in.op.def->FindInput(input);
  for (uint32_t k = at < 0 ? 0 : in.op.in_begin[at]; at >= 0 && k < in.op.in_begin[at + 1]; ++k)
    if (in.op.in[k] != kNoSlot && d.known_meta[in.op.in[k]]) known.push_back(in.op.in[k]);
  return known;
}

}  // namespace heddle

#include "executor/plan/device/device_bodies.h"

#include <algorithm>

#include "core/op_traits.h"
#include "core/programs/sub_block_slots.h"

namespace heddle {
namespace {

bool IsUnwanted(const PlanDraft& d, uint32_t slot) {
  for (const BlockPlan& block : d.plan->blocks)
    for (const Instruction& in : block.instructions)
      if (std::find(in.op.in.begin(), in.op.in.end(), slot) != in.op.in.end()) return false;
  return !d.fetched[slot];
}

// Whether outputs of the operator's own kernel, other than what its block writes, are unused.
bool WritesNothing(const PlanDraft& d, const Instruction& in) {
  const auto& outs = in.op.def->outputs();
  for (size_t o = 0; o < outs.size(); ++o) {
    if (ir::IsSubBlockSlot(outs[o])) return false;
    if ((outs[o].flags & kRecord) == 0) continue;
    for (uint32_t k = in.op.out_begin[o]; k < in.op.out_begin[o + 1]; ++k)
      if (const uint32_t s = in.op.out[k]; s != kNoSlot && !IsUnwanted(d, s)) return false;
  }
  return true;
}

bool HoldsTensors(const PlanDraft& d, const std::vector<uint32_t>& slots) {
  return std::all_of(slots.begin(), slots.end(), [&](uint32_t s) {
    const ir::VarId v = d.plan->slots[s].var;
    if (v == ir::kNoVar) return false;
    if (d.program.vars[v].kind == ir::VarKind::kScopes) return IsUnwanted(d, s);
    if (d.program.vars[v].kind != ir::VarKind::kTensor) return false;
    for (size_t i = 0; i < d.plan->feeds.size(); ++i)
      if (d.plan->feeds[i].slot == s && d.request.feeds[i].kind != Value::Kind::kTensor)
        return false;
    return true;
  });
}

}  // namespace

uint32_t ConditionOf(const Instruction& in) {
  const OpDef& def = *in.op.def;
  const int input = ir::ConditionSlot(def);
  if (input < 0) return kNoSlot;
  const int scalar = def.FindAttr("is_scalar_condition");
  if (scalar >= 0 && !std::get<bool>(in.op.attrs[scalar])) return kNoSlot;
  const uint32_t at = in.op.in_begin[input];
  return in.op.in_begin[input + 1] - at == 1 ? in.op.in[at] : kNoSlot;
}

int FindBody(const PlanDraft& d, BlockAccess& access, const Instruction& in) {
  constexpr unsigned kKept =
      kRandom | kSideEffect | kCommunication | kReader | kToHost | kToDevice | kScopeOperands;
  if (!in.op.def->has(kControlFlow) || !d.CompilesBodies() || ConditionOf(in) == kNoSlot) return -1;
  const std::vector<int> blocks = BlocksOf(*d.plan, in);
  if (blocks.size() != 1 || !d.run_once[blocks[0]] || !WritesNothing(d, in)) return -1;
  const BlockAccess::Slots& slots = access.Of(blocks[0]);
  if ((slots.traits & kKept) != 0 || !HoldsTensors(d, slots.reads) ||
      !HoldsTensors(d, slots.writes))
    return -1;
  for (uint32_t s : slots.writes)
    if (d.plan->slots[s].storage == Storage::kScope || d.handed[s]) return -1;
  return blocks[0];
}

}  // namespace heddle

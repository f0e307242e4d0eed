// What the definition of an instruction's operator says about its operands and outputs.
#pragma once

#include <vector>

#include "core/op_context.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

// Per slot: some operator cannot do without it as its input.
std::vector<bool> FindRequired(const Plan& plan);
// The operand, by its place among all, is of a slot that takes any kind of value: shape functions
// of such operands know what to do with an array.
bool OfAnyKind(const std::vector<SlotDef>& slots, const IdList& begin, size_t operand);
bool HasRecord(const std::vector<SlotDef>& slots);
// The variable that the instruction rewrites with this output; nullptr: it rewrites none with it.
// (Hidden slots are made in the order of the outputs, so that their numbers ascend.)
const Instruction::Rewrite* RewriteOf(const Instruction& in, uint32_t slot);
// An error for outputs that are larger than any memory, or whose dimensions nobody can go through.
Status CheckSizes(const std::vector<ShapeContext::OutMeta>& outs);
// Attributes given by variables become plain ones when all their values are known.
Status FixVarAttrs(const PlanDraft& draft, Instruction* in);

}  // namespace heddle

// Facts that follow from the definition of an instruction's operator.
#pragma once

#include <vector>

#include "core/shape_context.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

// Per slot: some operator requires it as an input.
std::vector<bool> FindRequired(const Plan& plan);
// Whether the operand, given by its position among all, belongs to a slot that accepts any kind of
// value. Shape functions of such slots handle arrays.
bool OfAnyKind(const std::vector<SlotDef>& slots, const IdList& begin, size_t operand);
bool HasRecord(const std::vector<SlotDef>& slots);
// The rewrite for which the instruction writes this output; nullptr: none. (Hidden slots are made
// in the order of the outputs, so their numbers ascend.)
const Instruction::Rewrite* RewriteOf(const Instruction& in, uint32_t slot);
// An error for outputs that are larger than any memory, or rejected by CheckEmptyDims.
Status CheckSizes(const std::vector<ShapeContext::OutMeta>& outs);
// Turns attributes given by variables into plain ones if all their values are known.
Status FixVarAttrs(const PlanDraft& draft, Instruction* in);

// The slots of an input whose dtype and shape are known at this point.
std::vector<uint32_t> KnownIn(const PlanDraft& d, const Instruction& in, std::string_view input);

}  // namespace heddle

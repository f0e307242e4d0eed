#include "executor/plan/shapes/unwritten.h"

#include "core/operands/unwritten.h"
#include "core/shape_context.h"
#include "executor/plan/shapes/instruction_facts.h"

namespace heddle {

bool StaysUnwritten(const PlanDraft& d, const Instruction& in, size_t i,
                    const std::vector<ShapeContext::OutMeta>& outs) {
  if (d.request.dispatch == Dispatch::kDevice || (i < outs.size() && outs[i].set)) return false;
  const uint32_t slot = in.op.out[i];
  size_t s = 0;
  while (in.op.out_begin[s + 1] <= i) ++s;
  return (in.op.def->outputs()[s].flags & kMayBeUnwritten) != 0 && d.plan->slots[slot].versioned &&
         RewriteOf(in, slot) == nullptr;
}

}  // namespace heddle

// The analyses of functions, see function_plan.h. Each is a part of one of the plan's analyses.
//
// A block becomes a function if block 0 alone calls it, every time with tensors of the same dtypes
// and shapes that are known, if all shapes inside follow from them, and if it does enough work.
// Otherwise its operators are put back in the place of the calls, and planning begins again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/function_ref.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

// The least work of a function, in ns, by estimate: what a call costs more than the operators in
// its place is then less than one percent.
inline constexpr float kLeastFunctionNs = 20000;

// After slots are assigned: fills in Plan::functions.
void FindFunctions(PlanDraft& draft);

// Infers the shapes of a call's results. `set_known(slot, like)`: the slot has the dtype and shape
// of `like`; `visit(block)` infers the shapes in a block. False: the calls cannot be planned, which
// `draft.shared` notes.
Result<bool> VisitCall(PlanDraft& draft, Instruction& in,
                       FunctionRef<void(uint32_t, const Slot&)> set_known,
                       FunctionRef<Status(int)> visit);

// After costs were estimated: a call costs what its block does.
void SumCallCosts(Plan& plan);

// Lists the views of parameters (FunctionPlan::views).
void FindBoundViews(Plan& plan);

// Prepares kernels for a call, with the constants that it gives. `prepare(instructions)` prepares
// their kernels and stores the states in them.
Status PrepareCalls(PlanDraft& draft,
                    FunctionRef<Status(const std::vector<Instruction*>&)> prepare);
// Whether an instruction of a function has a state for each call.
bool IsPreparedPerCall(const PlanDraft& draft, int block, const Instruction& in);

// Calls fn(slot of the caller, instruction of the block, its state, position of the operand) for
// each operand inside the block that the call gives. Precondition: kernels are prepared.
void ForGivenOperands(
    const Plan& plan, const Instruction& call,
    FunctionRef<void(uint32_t, const Instruction&, const KernelState*, size_t)> fn);

// The program with the blocks put back in the place of their calls, for `request`.
void ExpandCalls(const std::vector<int>& blocks, PlanRequest* request);

}  // namespace heddle

// Operands that operators with a sub-block have besides those in the file: variables of the
// sub-block that the operator's kernel hands values to, or takes them from. A definition asks for
// them by slots whose name starts with "sub_block:":
//
//   sub_block:S          for each name in S, the variable that the sub-block calls so
//   sub_block:grad(S)    for each name in S, the one called name@GRAD
//   sub_block:primal(S)  for each name in S, the one called as it is without @GRAD…
//   sub_block:given(S)   as S, and each variable holds something whenever the sub-block runs
//   sub_block:local(S)   as S, but the sub-block gets variables of its own where it has none
//   sub_block:carried    what the forward block rewrites from step to step and its gradient reads
//   sub_block:kept       other variables of the forward block that its gradient reads
//   sub_block:arrays     tensor arrays that the sub-block declares
//   sub_block:changing(S)  for each name in S, the variable where running the sub-block once more
//                        can give it another value: it depends on something carried from run to
//                        run, on random numbers or on operators with side effects
//
// S is another slot of the operator, or an attribute that lists names. "The forward block" is the
// one that the sub-block is the gradient of, or the sub-block itself. The operand is empty when
// there is no such variable. Variables that the kernel writes for the sub-block to read belong to
// output slots.
#pragma once

#include <string_view>

#include "core/programs/ir.h"

namespace heddle::ir {

void FillSubBlockSlots(Program* program);
// Whether the slot's operands are the ones described above, which no file lists.
bool IsSubBlockSlot(const SlotDef& slot);
// Whether the kernel passes values through the slot, as through all of the above but
// sub_block:changing, which only describes the sub-block.
bool HandsValues(const SlotDef& slot);
// Whether an operator that reads a record of steps restores the recorded values to the slot's
// variables.
bool IsRecordedSlot(const SlotDef& slot);
// Whether the operator copies one of its operands, selected by a number, and fails if that is
// empty. The output's shape then follows from the operands' shapes, even if some operands are
// empty.
bool SelectsOperand(const OpDef& def);
// Whether the operator writes one of its outputs, selected by a number, and leaves the others
// unchanged.
bool SelectsOutput(const OpDef& def);
// The input whose one bool decides whether the operator's sub-block runs, if its kernel does
// nothing else except record the runs. -1: another kind of operator. (If it has an attribute
// is_scalar_condition, that must be true.)
int ConditionSlot(const OpDef& def);
// Whether it may skip its sub-block, by a condition or by another operator's record of runs.
bool NeedNotRun(const OpDef& def);
// Whether it may run its sub-block many times; it then empties the block's arrays before each run.
bool RunsAgain(const OpDef& def);

}  // namespace heddle::ir

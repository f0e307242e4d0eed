// Which blocks of control flow a device may execute.
//
// The kernel of such an operator (while, conditional_block) runs on the host and looks at one bool
// there; the block's instructions are on the device's streams, those of its counters beside them on
// the host. Other operators that run blocks, and blocks that are as FindBody says, stay on the
// host with all that they hold.
#pragma once

#include <cstdint>

#include "executor/plan/block_access.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

// The operand that decides whether the block runs; kNoSlot: the operator has no such operand.
uint32_t ConditionOf(const Instruction& in);

// The block that the instruction may leave to a device; -1: none. The host keeps blocks with
// variables that are no tensors, with random numbers, side effects or communication, those that
// write to the scope, those whose runs a gradient's operator reads (a record of steps), and those
// of several instructions.
int FindBody(const PlanDraft& draft, BlockAccess& access, const Instruction& in);

}  // namespace heddle

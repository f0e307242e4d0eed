// Decides which blocks of control flow a device may execute.
//
// The kernel of such an operator (while, conditional_block) runs on the host, where it reads one
// bool. The block's instructions are on the device's streams, and those of its counters run on the
// host. Other operators that run blocks, and blocks that FindBody rejects, stay on the host with
// all that they contain.
#pragma once

#include <cstdint>

#include "executor/plan/block_access.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

// The operand that decides whether the block runs; kNoSlot: the operator has none.
uint32_t ConditionOf(const Instruction& in);

// The block that a device may execute for the instruction; -1: none. The host keeps blocks with
// variables that are no tensors, with random numbers, side effects or communication, blocks that
// write to the scope, blocks whose runs a gradient operator reads (a record of steps), and blocks
// that several instructions run.
int FindBody(const PlanDraft& draft, BlockAccess& access, const Instruction& in);

}  // namespace heddle

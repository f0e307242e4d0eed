// Inserts the copies between places.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "executor/plan/device/place_instructions.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

// The operators that a device plan adds: a copy between host and device, the host's wait for a
// value, and a mark, which is the first and the last instruction of a block that a device executes.
// A mark does nothing; the block's work comes between its two marks.
const OpDef& CopyDef();
const OpDef& AwaitDef();
const OpDef& MarkDef();
// Whether planning has added the instruction, so that it stands for no operator of the program.
bool IsAdded(const Instruction& in);
// Whether the instruction copies directly from one device to another.
bool IsPeerCopy(const Plan& plan, const Instruction& in);

// Gives instructions on the device slots of their own and inserts the copies: once per value for
// all readers at the other place. `places` grows with the instructions. Values that never change
// become pairs in `resident` instead, since they are copied once.
//
// A variable that a device's block rewrites is, whenever the block begins and after it has ended,
// at each place that reads its value from before, or, if none does, at the place of its last write.
void InsertCopies(PlanDraft& draft, Places* places,
                  std::vector<std::pair<uint32_t, uint32_t>>* resident);

// Checks that each instruction and its operands are at one place; kInternal. Programs may state the
// places of some operators only; a plan for a device has all.
Status CheckPlaces(const Plan& plan, const Places& places);

}  // namespace heddle

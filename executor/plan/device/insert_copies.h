// Inserts the copies between places.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "executor/plan/device/place_instructions.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

// The operators that a device plan adds: a copy from the host to the device or back, the host's
// waiting for a value, and the border of a block that a device executes. A mark does nothing: work
// of the block comes behind its first instruction and before its last one, both marks.
const OpDef& CopyDef();
const OpDef& AwaitDef();
const OpDef& MarkDef();
// Planning has made the instruction; it stands for no operator of the program.
bool IsAdded(const Instruction& in);
// A copy from one device to another, not by way of the host.
bool IsPeerCopy(const Plan& plan, const Instruction& in);

// Gives slots of the device to what runs there and inserts the copies: once a value, for all
// readers at the other place. `places` grows with the instructions. Values that never change become
// pairs of `resident` instead, since they are copied once.
//
// A variable that a device's block rewrites lies, whenever the block begins and when it has ended,
// at each place that reads the value of before, or, if none does, where it is written last.
void InsertCopies(PlanDraft& draft, Places* places,
                  std::vector<std::pair<uint32_t, uint32_t>>* resident);

// Every instruction and everything that it computes with has one place, or kInternal. Programs may
// say the places of some operators only; a plan for a device has all.
Status CheckPlaces(const Plan& plan, const Places& places);

}  // namespace heddle

// Assigns places to instructions and inserts the copies between places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/plan/plan_draft.h"

namespace heddle {

// Further devices have the places behind the first one's.
enum Place : uint8_t { kOnHost = 0, kOnDevice = 1 };
// Sets of places are the bits of 32-bit words.
constexpr size_t kMostDevices = 31;

// The two operators that a device plan adds: a copy from the host to the device or back, and the
// host's waiting for a value.
const OpDef& CopyDef();
const OpDef& AwaitDef();
// A copy from one device to another, not by way of the host.
bool IsPeerCopy(const Plan& plan, const Instruction& in);

// For each instruction of block 0: where its operator says; else where the program's own copies
// between places say, if it has some; else where CompileOptions::placement says. Host only: what
// the device has no kernel for, what runs blocks or touches variables that are no tensors or that
// several blocks use, and what only looks at shapes of the host's values. Errors: operators name
// devices that the executor has not; it has more than kMostDevices.
Result<std::vector<uint8_t>> PlaceInstructions(const PlanDraft& draft);

// Gives slots of the device to what runs there and inserts the copies: once a value, for all
// readers at the other place. `place` grows with the instructions. Values that never change become
// pairs of `resident` instead, since they are copied once.
void InsertCopies(PlanDraft& draft, std::vector<uint8_t>* place,
                  std::vector<std::pair<uint32_t, uint32_t>>* resident);

// Every instruction and everything that it computes with has one place, or kInternal. Programs may
// say the places of some operators only; a plan for a device has all.
Status CheckPlaces(const Plan& plan, const std::vector<uint8_t>& place);

}  // namespace heddle

// Assigns places to instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/plan/plan_draft.h"

namespace heddle {

// Further devices have the numbers after kOnDevice.
enum Place : uint8_t { kOnHost = 0, kOnDevice = 1 };
// Sets of places are bits of a 32-bit word.
constexpr size_t kMostDevices = 31;

// Per block: the places of its instructions; empty for blocks of control flow that the host
// executes.
using Places = std::vector<std::vector<uint8_t>>;

// Places each instruction of block 0: as its operator says; else by the program's own copies
// between places, if it has some; else by CompileOptions::placement. Always on the host: operators
// without a kernel on the device, those that touch variables that are no tensors, those that run
// blocks which device_bodies.h rejects, and those that read only shapes of host values. The same
// holds for blocks that a device executes (PlanDraft::device_bodies, set here), except that values
// of one element stay on the host if it computes them. Errors: operators name devices that the
// executor lacks, or it has more than kMostDevices.
Result<Places> PlaceInstructions(PlanDraft& draft);

}  // namespace heddle

// Assigns places to instructions.
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

// Per block: the places of its instructions. Blocks of control flow that the host executes have
// none.
using Places = std::vector<std::vector<uint8_t>>;

// For each instruction of block 0: where its operator says; else where the program's own copies
// between places say, if it has some; else where CompileOptions::placement says. Host only: what
// the device has no kernel for, what touches variables that are no tensors, what runs blocks that
// device_bodies.h does not allow, and what only looks at shapes of the host's values. Likewise for
// the blocks that a device executes (PlanDraft::device_bodies, set here), but that values of one
// element stay on the host where it computes them. Errors: operators name devices that the executor
// has not; it has more than kMostDevices.
Result<Places> PlaceInstructions(PlanDraft& draft);

}  // namespace heddle

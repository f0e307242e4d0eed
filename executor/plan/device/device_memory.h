// Plans the memory of a device plan's static temporaries.
#pragma once

#include <utility>
#include <vector>

#include "executor/plan/device_plan.h"
#include "executor/plan/plan_draft.h"
#include "scheduler/stream_sync.h"

namespace heddle {

// The temporaries of a block that a device executes. They lie behind each other's ends in memory
// that is a temporary itself, of the block that runs this one: each run of the block uses it anew.
struct BodyMemory {
  size_t bytes = 0;
  // Slots that this block or those inside it alone touch, with their places from where the block's
  // memory begins.
  std::vector<std::pair<uint32_t, size_t>> places;
};

// Gives each slot of the device at `place` that block `block` and those inside it alone touch and
// whose shape is known its place, an operator's output that of an input nobody needs any more where
// the operator allows it. Instructions are as they will run, on `lane_of`. `bodies`: per block, of
// those inside this one. Receives `memory`; returns what must wait for what besides the
// dependencies: pairs of instructions, the later one second, ascending in it.
std::vector<std::pair<uint32_t, uint32_t>> PlanDeviceMemory(
    PlanDraft& draft, uint8_t place, int block, const std::vector<uint32_t>& lane_of,
    const StreamSync& sync, const std::vector<BodyMemory>& bodies, BodyMemory* memory);

}  // namespace heddle

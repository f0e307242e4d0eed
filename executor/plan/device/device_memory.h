// Plans the memory of a device plan's static temporaries.
#pragma once

#include <utility>
#include <vector>

#include "executor/plan/device_plan.h"
#include "executor/plan/plan_draft.h"
#include "scheduler/stream_sync.h"

namespace heddle {

// The temporaries of a block that a device executes. Their memory is itself a temporary of the
// block that runs this one, and each run of the block reuses it.
struct BodyMemory {
  size_t bytes = 0;
  // Slots that only this block and blocks inside it touch, with their offsets in the block's
  // memory.
  std::vector<std::pair<uint32_t, size_t>> places;
};

// Plans the device slots at `place` that only block `block` and blocks inside it touch and whose
// shapes are known. An output takes over the memory of an input that is not used afterwards, if the
// operator allows it. Instructions are in execution order, on the streams `stream_of`. `bodies`:
// the memory of each block inside this one. Writes `memory`, and returns the waits that the memory
// requires beyond the dependencies, as pairs of instructions of which the second waits; ascending
// in the second.
std::vector<std::pair<uint32_t, uint32_t>> PlanDeviceMemory(
    PlanDraft& draft, uint8_t place, int block, const std::vector<uint32_t>& stream_of,
    const StreamSync& sync, const std::vector<BodyMemory>& bodies, BodyMemory* memory);

}  // namespace heddle

// Plans the memory of a device plan's static temporaries.
#pragma once

#include <utility>
#include <vector>

#include "executor/plan/device_plan.h"
#include "executor/plan/plan_draft.h"
#include "scheduler/stream_sync.h"

namespace heddle {

// Gives each slot of the device at `place` whose shape is known its place in one block
// (DevicePlan::offsets), an operator's output that of an input nobody needs any more where the
// operator allows it. Instructions are as they will run, on `lane_of`. Returns what must wait for
// what besides the dependencies: pairs of instructions, the later one second, ascending in it.
std::vector<std::pair<uint32_t, uint32_t>> PlanDeviceMemory(PlanDraft& draft, uint8_t place,
                                                            const std::vector<uint32_t>& lane_of,
                                                            const StreamSync& sync,
                                                            DevicePlan* device);

}  // namespace heddle

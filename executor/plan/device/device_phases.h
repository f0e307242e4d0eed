// Decides which of a block's steps are kernels to be captured as one piece, and which come before
// and after them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/plan/device_plan.h"
#include "scheduler/stream_sync.h"

namespace heddle {

// Steps before the kernels depend on none of them; no kernel depends on a step after them. Returns
// why there are no such phases; empty: `phases` has one per instruction. Preconditions: there is
// one device, and `device` has its streams. `host_kernels`: the device executes the host's kernels,
// which may draw random numbers; its own kernels never do.
std::string FindPhases(const Plan& plan, int block, const std::vector<uint32_t>& stream_of,
                       const StreamSync& sync, const DevicePlan& device, bool host_kernels,
                       std::vector<DevicePlan::Phase>* phases);

}  // namespace heddle

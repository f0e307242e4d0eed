// Which of a block's steps are kernels that can be captured as one piece, and which come before and
// after these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/plan/device_plan.h"
#include "scheduler/stream_sync.h"

namespace heddle {

// Steps before the kernels depend on none of them; no kernel depends on a step after them. Returns
// why there are no such phases; empty: `phases` has one for each instruction. Preconditions: there
// is one device; `device` has its lanes. `host_kernels`: it executes the host's kernels, which may
// draw random numbers; its own ones never do.
std::string FindPhases(const Plan& plan, int block, const std::vector<uint32_t>& lane_of,
                       const StreamSync& sync, const DevicePlan& device, bool host_kernels,
                       std::vector<DevicePlan::Phase>* phases);

}  // namespace heddle

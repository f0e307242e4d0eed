// Error statuses for failures of a device.
#pragma once

#include <string>

#include "executor/device/device_runtime.h"
#include "executor/plan/device_plan.h"
#include "executor/run/run_state.h"

namespace heddle {

// The device's own words, with what is left of it. `lane` 0: no stream in particular.
Status ExplainFailure(const Status& status, const Device& device, const DevicePlan& plan,
                      uint32_t lane);

// For an allocation that failed for a slot: what was asked for, and who holds the most.
Status ExplainNoMemory(const Status& status, RunState& run, const DeviceRuntime& device,
                       uint32_t slot, size_t bytes);

}  // namespace heddle

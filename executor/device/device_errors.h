// Errors for failures of a device.
#pragma once

#include <string>

#include "executor/device/device_runtime.h"
#include "executor/plan/device_plan.h"
#include "executor/run/run_state.h"

namespace heddle {

// The device's own message, with its free memory. `stream` 0: no stream in particular.
Status ExplainFailure(const Status& status, const Device& device, const DevicePlan& plan,
                      uint32_t stream);

// For a failed allocation for a slot: adds how much was asked for, and which values hold the most.
Status ExplainNoMemory(const Status& status, RunState& run, const DeviceRuntime& device,
                       uint32_t slot, size_t bytes);

}  // namespace heddle

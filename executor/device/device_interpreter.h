// Executes a plan of which devices execute a part.
#pragma once

#include "executor/device/device_runtime.h"
#include "executor/device/dispatch_crew.h"
#include "executor/run/run_state.h"
#include "scheduler/host_pool.h"
#include "scheduler/kernel_arena.h"

namespace heddle {

class DeviceInterpreter {
 public:
  // Executes the plan; returns when the devices have finished, or have skipped what followed a
  // failure. The first failure is the result, with its operator and stream. `crew`: the threads
  // that put work on the streams of several devices, unless another run uses them; nullptr: the
  // calling thread does. `pool`: threads that help with the plan's tasks; nullptr: none. `host`:
  // the arena of the host's kernels. `streams`: the arena of kernels that a device borrows from the
  // host.
  static Status Run(RunState& run, const DeviceRuntimes& devices, DispatchCrew* crew,
                    HostPool* pool, KernelArena& host, KernelArena& streams);
};

}  // namespace heddle

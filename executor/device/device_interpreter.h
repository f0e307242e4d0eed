// Executes a plan of which a device has a part.
#pragma once

#include "executor/device/device_runtime.h"
#include "executor/device/dispatch_crew.h"
#include "executor/run/run_state.h"
#include "scheduler/host_pool.h"
#include "scheduler/kernel_arena.h"

namespace heddle {

class DeviceInterpreter {
 public:
  // On the calling thread; returns when the device has done all of it, or has skipped what followed
  // a failure. The first failure is the result, with the operator and the stream. `crew`: the
  // threads that put work on the streams of several devices, unless another run has them; nullptr:
  // this one does. `pool`: whose threads help with the plan's tasks, nullptr: nobody's; `host`:
  // where the host's kernels execute, `streams`: those that a device borrows.
  static Status Run(RunState& run, const DeviceRuntimes& devices, DispatchCrew* crew,
                    HostPool* pool, KernelArena& host, KernelArena& streams);
};

}  // namespace heddle

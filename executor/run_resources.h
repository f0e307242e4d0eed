// RunResources: what all runs of one executor share: threads, memory, admission.
//
// Threads: all members may be used from any thread; fields that are no locks are constant after
// construction.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/services.h"
#include "executor/device/device_runtime.h"
#include "executor/device/dispatch_crew.h"
#include "executor/plan/plan_builder.h"
#include "heddle/executor.h"
#include "memory/pool_allocator.h"
#include "scheduler/host_pool.h"
#include "scheduler/kernel_arena.h"
#include "scheduler/run_admission.h"
#include "scheduler/watcher.h"

namespace heddle::internal {

struct RunResources {
  explicit RunResources(const ExecutorOptions& options);
  // Services for kernels that get help from the threads of `arena`.
  Services ServicesFor(KernelArena& arena);
  // "cpu", and the names of the devices.
  std::vector<std::string> places() const;
  // The target for which plans are made.
  PlanTarget target() const;

  const int threads;
  const int runs_at_once;    // see ExecutorOptions
  const bool limited;        // memory is limited
  const bool poison;         // see ExecutorOptions
  const float host_task_ns;  // likewise
  PoolAllocator allocator;
  HostPool pool;
  // Kernels use all threads (wide_arena) in a run that goes one instruction after another; they use
  // one (narrow_arena) if each thread has instructions of its own, or if several runs share the
  // machine.
  KernelArena wide_arena, narrow_arena;
  RunAdmission admission;
  Watcher watcher;
  const DeviceRuntimes devices;
  DeviceRuntime* const device;  // the first device; nullptr: none
  // With several devices; see ExecutorOptions::device_threads.
  const std::unique_ptr<DispatchCrew> crew;
  // The rank to which runs belong that communicate; nullptr: none.
  const std::shared_ptr<Communicator> communicator;
};

}  // namespace heddle::internal

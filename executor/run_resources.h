// The resources that all runs of one executor share: threads, memory, admission of runs.
//
// Threads: all members from any thread; the fields that are no locks are constant after
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
  // For kernels that find help in `arena`.
  Services ServicesFor(KernelArena& arena);
  // "cpu", and those of the devices.
  std::vector<std::string> places() const;
  // The target that plans are made for.
  PlanTarget target() const;

  const int threads;
  const int runs_at_once;    // see ExecutorOptions
  const bool limited;        // memory is
  const bool poison;         // see ExecutorOptions
  const float host_task_ns;  // likewise
  PoolAllocator allocator;
  HostPool pool;
  // Kernels of a run that goes one instruction after another use all threads; those of a run whose
  // threads each have instructions of their own, or that shares the machine with others, use one.
  KernelArena wide_arena, narrow_arena;
  RunAdmission admission;
  Watcher watcher;
  const DeviceRuntimes devices;
  DeviceRuntime* const device;               // the first of them; nullptr: none
  const std::unique_ptr<DispatchCrew> crew;  // with several; see ExecutorOptions::device_threads
  // The rank that runs are of when they communicate; nullptr: none.
  const std::shared_ptr<Communicator> communicator;
};

}  // namespace heddle::internal

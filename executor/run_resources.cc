#include "executor/run_resources.h"

#include <algorithm>

#include "heddle/host.h"

namespace heddle::internal {

RunResources::RunResources(const ExecutorOptions& o)
    : threads(o.threads > 0 ? o.threads : AvailableThreads()),
      runs_at_once(std::max(0, o.runs_at_once)),
      limited(o.memory_limit > 0),
      poison(o.poison),
      host_task_ns(o.host_task_ns),
      allocator(o.memory_limit, o.poison),
      pool(threads, &KernelArena::WarmUp),
      wide_arena(threads, true, pool),
      narrow_arena(threads, false, pool),
      admission(threads, runs_at_once),
      device(o.device
                 ? std::make_unique<DeviceRuntime>(o.device, o.device_streams, o.device_capture)
                 : nullptr),
      communicator(o.communicator) {}

Services RunResources::ServicesFor(KernelArena& arena) {
  Services s;
  s.intra = &arena.intra();
  s.allocator = &allocator;
  return s;
}

PlanTarget RunResources::target() const {
  PlanTarget target;
  target.threads = threads;
  target.tokens = !limited;
  if (device == nullptr) return target;
  target.device = &device->device();
  target.compute_streams = device->compute_streams();
  target.host_task_ns = host_task_ns;
  return target;
}

}  // namespace heddle::internal

#include "executor/run_resources.h"

#include <algorithm>

#include "heddle/host.h"

namespace heddle::internal {

namespace {

DeviceRuntimes RuntimesOf(const ExecutorOptions& o) {
  DeviceRuntimes runtimes;
  const auto add = [&](const std::shared_ptr<Device>& device) {
    if (device != nullptr)
      runtimes.push_back(
          std::make_unique<DeviceRuntime>(device, o.device_streams, o.device_capture));
  };
  add(o.device);
  for (const auto& device : o.more_devices) add(device);
  return runtimes;
}

}  // namespace

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
      devices(RuntimesOf(o)),
      device(devices.empty() ? nullptr : devices[0].get()),
      crew(o.device_threads && devices.size() > 1 ? std::make_unique<DispatchCrew>(devices.size())
                                                  : nullptr),
      communicator(o.communicator) {}

Services RunResources::ServicesFor(KernelArena& arena) {
  Services s;
  s.intra = &arena.intra();
  s.allocator = &allocator;
  return s;
}

std::vector<std::string> RunResources::places() const {
  std::vector<std::string> places = {"cpu"};
  for (const auto& one : devices) places.push_back(one->place());
  return places;
}

PlanTarget RunResources::target() const {
  PlanTarget target;
  target.threads = threads;
  target.tokens = !limited;
  if (device == nullptr) return target;
  for (const auto& one : devices) target.devices.push_back(&one->device());
  target.compute_streams = device->compute_streams();
  target.host_task_ns = host_task_ns;
  return target;
}

}  // namespace heddle::internal

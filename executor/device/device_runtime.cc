#include "executor/device/device_runtime.h"

#include <algorithm>

namespace heddle {

DeviceRuntime::DeviceRuntime(std::shared_ptr<Device> device, int compute_streams, bool capture)
    : device_(std::move(device)),
      place_(device_->name() + ":" + std::to_string(device_->number())),
      compute_streams_(static_cast<uint32_t>(std::max(1, compute_streams))),
      capture_(capture),
      memory_(device_),
      pinned_(device_) {}

DeviceRuntime::~DeviceRuntime() { memory_.Close(); }

Result<std::unique_ptr<StreamSet>> DeviceRuntime::Acquire(const std::vector<int>& priorities,
                                                          uint32_t copies_in) {
  const size_t count = priorities.size() + copies_in + 1;
  {
    MutexLock lock(mutex_);
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(), [&](const auto& set) {
      return set->priorities == priorities && set->streams.size() == count;
    });
    if (found != idle_.rend()) {
      auto set = std::move(*found);
      idle_.erase(std::next(found).base());
      return set;
    }
  }
  auto set = std::make_unique<StreamSet>();
  set->priorities = priorities;
  std::vector<int> all = priorities;
  all.resize(count, 0);
  for (int priority : all) {
    HEDDLE_ASSIGN_OR_RETURN(auto stream, device_->NewStream(priority));
    set->streams.push_back(std::move(stream));
  }
  return set;
}

PlaceMemory DeviceRuntime::memory_use() const {
  PlaceMemory use;
  use.place = place_;
  use.allocated_bytes = memory_.bytes_in_use();
  use.reserved_bytes = use.allocated_bytes + memory_.bytes_cached();
  use.peak_bytes = memory_.peak_bytes_in_use();
  return use;
}

void DeviceRuntime::Trim() {
  {
    MutexLock lock(mutex_);
    for (auto& set : idle_) set->arena.reset();
  }
  memory_.Trim();
  pinned_.Trim();
}

void DeviceRuntime::Release(std::unique_ptr<StreamSet> set) {
  MutexLock lock(mutex_);
  idle_.push_back(std::move(set));
}

}  // namespace heddle

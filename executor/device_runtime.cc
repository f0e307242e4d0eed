#include "executor/device_runtime.h"

#include <algorithm>

namespace heddle {

DeviceRuntime::DeviceRuntime(std::shared_ptr<Device> device, int compute_streams)
    : device_(std::move(device)), compute_streams_(static_cast<uint32_t>(std::max(1, compute_streams))),
      memory_(device_) {}

DeviceRuntime::~DeviceRuntime() { memory_.Close(); }

Result<std::unique_ptr<StreamSet>> DeviceRuntime::Acquire() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto set = std::move(idle_.back());
      idle_.pop_back();
      return set;
    }
  }
  auto set = std::make_unique<StreamSet>();
  for (uint32_t k = 0; k < compute_streams_ + 2; ++k) {
    HEDDLE_ASSIGN_OR_RETURN(auto stream, device_->NewStream());
    set->streams.push_back(std::move(stream));
  }
  return set;
}

void DeviceRuntime::Release(std::unique_ptr<StreamSet> set) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(set));
}

}  // namespace heddle

// A device as the runs of one executor share it: its memory, and streams that are lent to one run at a
// time.
//
// Ownership: keeps the device. Threads: all methods from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/caching_allocator.h"
#include "device/device.h"

namespace heddle {

// By lane: streams[k] is lane k + 1 of a DevicePlan.
struct StreamSet {
  std::vector<std::unique_ptr<Stream>> streams;
};

class DeviceRuntime {
 public:
  DeviceRuntime(std::shared_ptr<Device> device, int compute_streams);
  ~DeviceRuntime();

  Device& device() { return *device_; }
  CachingAllocator& memory() { return memory_; }
  uint32_t compute_streams() const { return compute_streams_; }

  // Streams that nobody else uses until Release, which expects them synchronised.
  Result<std::unique_ptr<StreamSet>> Acquire();
  void Release(std::unique_ptr<StreamSet> set);
  // Gives cached memory back to the device.
  void Trim() { memory_.Trim(); }

 private:
  const std::shared_ptr<Device> device_;
  const uint32_t compute_streams_;
  CachingAllocator memory_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<StreamSet>> idle_;
};

}  // namespace heddle

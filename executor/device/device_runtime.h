// DeviceRuntime: a device as the runs of one executor share it: its memory, and its streams, which
// are lent to one run at a time.
//
// Ownership: keeps the device alive. Threads: all methods may be called from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/thread_annotations.h"
#include "device/caching_allocator.h"
#include "device/device.h"
#include "device/pinned_pool.h"
#include "heddle/place_memory.h"

namespace heddle {

// streams[k] is stream k + 1 of a DevicePlan. `arena`: device memory for the temporaries of the run
// that has the set; it grows as needed and stays for the next run.
struct StreamSet {
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<int> priorities;  // of the streams for kernels
  BufferRef arena;
};

class DeviceRuntime {
 public:
  DeviceRuntime(std::shared_ptr<Device> device, int compute_streams, bool capture);
  ~DeviceRuntime();

  Device& device() { return *device_; }
  const std::string& place() const { return place_; }  // "emulated:0"
  // The device memory that runs hold.
  PlaceMemory memory_use() const;
  CachingAllocator& memory() { return memory_; }
  const CachingAllocator& memory() const { return memory_; }
  PinnedPool& pinned() { return pinned_; }
  uint32_t compute_streams() const { return compute_streams_; }
  bool capture() const { return capture_; }  // see ExecutorOptions::device_capture

  // Lends streams until Release, before which they must be synchronised: for kernels, one per
  // priority; then those for copies in, and one for copies out.
  Result<std::unique_ptr<StreamSet>> Acquire(const std::vector<int>& priorities,
                                             uint32_t copies_in);
  void Release(std::unique_ptr<StreamSet> set);
  // Returns memory that no run uses to the device.
  void Trim();

 private:
  const std::shared_ptr<Device> device_;
  const std::string place_;
  const uint32_t compute_streams_;
  const bool capture_;
  CachingAllocator memory_;
  PinnedPool pinned_;
  Mutex mutex_;
  std::vector<std::unique_ptr<StreamSet>> idle_ HEDDLE_GUARDED_BY(mutex_);
};

// The devices of an executor, by their numbers in plans.
using DeviceRuntimes = std::vector<std::unique_ptr<DeviceRuntime>>;

}  // namespace heddle

// A pool of page-locked host memory.
//
// Ownership: buffers may outlive the pool; they keep the device. Threads: all methods from any
// thread; a buffer must be released when no copy uses it any more.
#pragma once

#include <memory>

#include "device/device.h"
#include "heddle/tensor.h"

namespace heddle {

class PinnedPool {
 public:
  explicit PinnedPool(std::shared_ptr<Device> device);
  ~PinnedPool();  // what is cached goes back to the device
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  // nullptr when the device gives none; aligned to 64 bytes.
  BufferRef Allocate(size_t bytes);
  // True when the range lies in a buffer of this pool.
  bool Holds(const void* memory, size_t bytes) const;
  void Trim();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace heddle

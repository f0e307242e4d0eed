// Device memory that is used again without asking the device, in the order of streams.
//
// A buffer belongs to the stream it was allocated for. When it is released, while the device may
// still work with it, its memory serves the next allocation for the same stream at once: that
// stream's own order keeps the uses apart. Where other streams have used it too (Use), it waits
// until they have reached the point at which it was released.
//
// Ownership: buffers may outlive the allocator and its device's other users; they keep the device.
// Threads: all methods from any thread; a buffer is released by the thread that owns the streams it
// was used on, or after those have been synchronised.
#pragma once

#include <memory>

#include "device/device.h"
#include "heddle/tensor.h"

namespace heddle {

class CachingAllocator {
 public:
  explicit CachingAllocator(std::shared_ptr<Device> device);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // `stream` nullptr: for nobody in particular; such a buffer must be released when no stream uses
  // it. When the device has no room left, cached memory goes back to it first.
  Result<BufferRef> Allocate(size_t bytes, Stream* stream);
  // Work that was put on `stream` uses the buffer (one of this allocator).
  static void Use(Buffer& buffer, Stream& stream);
  // Gives memory back that nobody uses. Streams that had buffers must still be there.
  void Trim();
  // No stream will be used any more: all must have been synchronised. What is cached goes back.
  void Close();

  size_t bytes_in_use() const;
  size_t bytes_cached() const;
  size_t peak_bytes_in_use() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace heddle

// Device memory that is reused in stream order, without a call of the device.
//
// A buffer belongs to the stream it was allocated for. When it is released, its memory serves the
// next allocation for the same stream at once, even though the device may still use it: the
// stream's order separates the uses. When other streams have used it too (Use), it is reused after
// they have reached the point at which it was released.
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

  // `stream` nullptr: the buffer belongs to no stream, and must be released when no stream uses it.
  // When the device has no room left, cached memory is returned to it first.
  Result<BufferRef> Allocate(size_t bytes, Stream* stream);
  // Work on `stream` uses the buffer, which is one of this allocator.
  static void Use(Buffer& buffer, Stream& stream);
  // The buffer, whose contents nobody needs, belongs to `stream` from now on. Work given to the
  // stream later comes behind all work given so far to the streams that used the buffer.
  static Status PassOn(Buffer& buffer, Stream& stream);
  // Returns unused memory to the device. Streams that had buffers must still exist.
  void Trim();
  // Ends the use of streams, which must all be synchronised, and returns cached memory.
  void Close();

  size_t bytes_in_use() const;
  size_t bytes_cached() const;
  // Since it was made, or since ResetPeak.
  size_t peak_bytes_in_use() const;
  void ResetPeak();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace heddle

// Memory for tensors whose size is known only when they are made: size classes with free lists, a
// part for each processor, so that callers on different ones share no counter and hand each other
// no memory that lies in a cache. What one part lacks is taken from another before the system is
// asked. Before the system is, large free blocks go back to it while they are more than ever was in
// use at once (and more than 16 MiB): about twice that is held at most.
//
// Threads: all methods may be called from any thread. Buffers may outlive the allocator: the part
// that one came from goes with the last of its buffers.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>
#include <string>
#include <vector>

#include "core/services.h"

namespace heddle {

// Thrown by Allocate; what() says how much was asked for and how much is held.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

// Fills memory with what is NaN in every floating type and hardly ever a sensible integer.
void Poison(void* data, size_t bytes);

class PoolAllocator final : public TensorAllocator {
 public:
  // `limit`: bytes alive at once; 0 = no limit. `poison`, for tests: memory holds Poison() when it
  // is handed out, and again when it has been given back.
  explicit PoolAllocator(size_t limit = 0, bool poison = false);
  ~PoolAllocator() override;
  PoolAllocator(const PoolAllocator&) = delete;
  PoolAllocator& operator=(const PoolAllocator&) = delete;

  // At least `bytes` bytes, aligned to 64. Throws OutOfMemory.
  BufferRef Allocate(size_t bytes) override { return Take(bytes, false); }
  BufferRef AllocateTight(size_t bytes) override { return Take(bytes, true); }
  // Gives free blocks back to the system.
  void Trim();
  size_t bytes_in_use() const;
  size_t bytes_cached() const;
  // The most in use at one time since the allocator was made, or since ResetPeak. Blocks of less
  // than 64 KiB that are taken by threads that meet may be missed.
  size_t peak_bytes() const { return most_.load(std::memory_order_relaxed); }
  void ResetPeak();

 private:
  struct Part;
  struct Block;
  BufferRef Take(size_t bytes, bool tight);
  Part& Home() const;
  void NotePeak();
  void NoteMost();
  void GiveBack();
  const size_t limit_;
  const bool poison_;
  const std::vector<Part*> parts_;
  std::atomic<size_t> peak_{0};  // of what is in use, about: how much may be kept free
  std::atomic<size_t> most_{0};  // see peak_bytes
};

}  // namespace heddle

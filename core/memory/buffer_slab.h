// BufferSlab: buffers with a common life time (the parameters of a file, packed weights), adjacent
// in a few blocks of memory. That costs fewer page faults than a block for each: see
// large_memory.h.
//
// Ownership: a block is freed when the slab has moved on to another one (or is destroyed) and all
// of its buffers are gone. Buffers may outlive the slab. Threads: any.
#pragma once

#include <memory>

#include "core/services.h"
#include "core/thread_annotations.h"
#include "heddle/tensor.h"

namespace heddle {

class BufferSlab {
 public:
  static constexpr size_t kOwnBlock = 1 << 20;  // a buffer of this size gets a block of its own

  // `expected`: how many bytes will be requested in all; 0: not known. `tight`: the free part of a
  // block takes no memory. Page faults then take more time, since huge pages are used only where
  // the expected bytes fill them.
  explicit BufferSlab(size_t expected = 0, bool tight = false)
      : expected_(expected), tight_(tight), in_all_(expected) {}
  ~BufferSlab();
  BufferSlab(const BufferSlab&) = delete;
  BufferSlab& operator=(const BufferSlab&) = delete;

  // A buffer aligned to 64 bytes; an empty reference if the system has no memory left.
  BufferRef Allocate(size_t bytes);

 private:
  struct Block;
  struct Piece;
  static void Release(Block* block);
  Block* TakeBlock(size_t need) HEDDLE_REQUIRES(mutex_);
  void PreferHugePages(size_t need) HEDDLE_REQUIRES(mutex_);

  Mutex mutex_;
  size_t expected_ HEDDLE_GUARDED_BY(mutex_);
  const bool tight_;
  // The block that may have room, from offset used_ on.
  Block* block_ HEDDLE_GUARDED_BY(mutex_) = nullptr;
  size_t used_ HEDDLE_GUARDED_BY(mutex_) = 0;
  const size_t in_all_;  // `expected` of the constructor
  // Bytes given out so far.
  size_t given_ HEDDLE_GUARDED_BY(mutex_) = 0;
  // Size of the next block if `expected` is not known.
  size_t next_bytes_ HEDDLE_GUARDED_BY(mutex_) = 128 << 10;
};

// The slab for a program's packed parameters, shared by all plans of the program. The first caller
// makes it, with BufferSlab's arguments; it lives as long as the cache or what was returned.
// Threads: any.
inline std::shared_ptr<BufferSlab> PackSlab(PackCache& packs, size_t expected, bool tight) {
  return std::const_pointer_cast<BufferSlab>(
      packs.Get<BufferSlab>(Tensor(), "memory", [&] { return new BufferSlab(expected, tight); }));
}

}  // namespace heddle

// Buffers that live and die together (a file's parameters, packed weights), side by side in few
// blocks of memory. That costs fewer page faults than a block for each: see large_memory.h.
//
// Ownership: a block goes when the slab has moved on to another one (or is gone) and the last of
// its buffers is, too. Buffers may outlive the slab. Threads: any.
#pragma once

#include <mutex>

#include "heddle/tensor.h"

namespace heddle {

class BufferSlab {
 public:
  static constexpr size_t kOwnBlock = 1 << 20;  // a buffer of this size has a block of its own

  // `expected`: bytes that will be asked for in all; 0: not known. `tight`: the free part of a
  // block takes no memory. Page faults then take more time, since huge pages are used only where
  // the expected bytes fill them.
  explicit BufferSlab(size_t expected = 0, bool tight = false)
      : expected_(expected), tight_(tight), in_all_(expected) {}
  ~BufferSlab();
  BufferSlab(const BufferSlab&) = delete;
  BufferSlab& operator=(const BufferSlab&) = delete;

  // Aligned to 64 bytes; an empty reference when the system has no memory left.
  BufferRef Allocate(size_t bytes);

 private:
  struct Block;
  struct Piece;
  static void Release(Block* block);
  Block* TakeBlock(size_t need);
  void PreferHugePages(size_t need);

  std::mutex mutex_;
  size_t expected_;
  const bool tight_;
  Block* block_ = nullptr;  // where there may be room, from used_ on
  size_t used_ = 0;
  const size_t in_all_;            // what was expected at first
  size_t given_ = 0;               // bytes of pieces so far
  size_t next_bytes_ = 128 << 10;  // of the next block, where nothing is expected
};

}  // namespace heddle

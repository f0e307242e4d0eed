// ArenaBlocks: memory blocks of one size for the temporaries of runs, shared by several plans: a
// plan for smaller shapes has its arena at the beginning of a block. There are as many blocks as
// were ever in use at the same time.
//
// Threads: all methods may be called from any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "core/services.h"
#include "core/thread_annotations.h"
#include "heddle/tensor.h"

namespace heddle {

class ArenaBlocks {
 public:
  explicit ArenaBlocks(size_t bytes) : bytes_(bytes) {}
  size_t bytes() const { return bytes_; }

  // Takes the free block that was given back last, or allocates one. Throws std::bad_alloc.
  BufferRef Take(TensorAllocator& allocator) {
    {
      MutexLock lock(mutex_);
      if (!idle_.empty()) {
        BufferRef block = std::move(idle_.back());
        idle_.pop_back();
        return block;
      }
    }
    return allocator.Allocate(bytes_);
  }
  void GiveBack(BufferRef block) {
    MutexLock lock(mutex_);
    idle_.push_back(std::move(block));
  }
  // Frees the blocks that are not in use.
  void Trim() {
    MutexLock lock(mutex_);
    idle_.clear();
  }

 private:
  const size_t bytes_;
  Mutex mutex_;
  std::vector<BufferRef> idle_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle

// TokenBlocks: a block of memory for each token, handed out to one value at a time. A block comes
// back by itself when the last reference to it goes, whoever drops it.
//
// Ownership: buffers may outlive the TokenBlocks; what is still held then goes with its last
// reference. Threads: Take and the end of a buffer, any thread at any time; all else, while nobody
// takes. The allocator must outlive the TokenBlocks. Memory ordering: the end of a buffer comes
// after every use of it (see Buffer::Release) and publishes its place with a release; the Take that
// finds the place free acquires it. So who is handed a block comes after all who used it before, in
// whatever order a schedule runs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/services.h"

namespace heddle {

class TokenBlocks {
 public:
  // `bytes`: per token; memory is taken from the allocator when a token is first asked for.
  // `poison`, for tests: fill blocks that come back, see PoolAllocator.
  TokenBlocks(TensorAllocator& allocator, std::span<const size_t> bytes, bool poison = false);
  ~TokenBlocks();
  TokenBlocks(const TokenBlocks&) = delete;
  TokenBlocks& operator=(const TokenBlocks&) = delete;

  // At least `bytes` bytes: the token's block, enlarged where it is too small; the allocator's
  // where somebody still has that. Throws what the allocator throws.
  BufferRef Take(uint32_t token, size_t bytes);
  // Blocks of at least so many bytes that nobody has go back to the allocator.
  void GiveBack(size_t least);
  // The bytes of all blocks that tokens have now, in use or not.
  size_t bytes() const;

 private:
  struct Core;
  TensorAllocator& allocator_;
  Core* const core_;
};

}  // namespace heddle

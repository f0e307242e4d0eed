#include "core/memory/buffer_slab.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>

#include "core/memory/large_memory.h"

namespace heddle {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kLargestBlock = 4 << 20;
constexpr size_t kLargestTight =
    16 << 20;  // block size of a tight slab; the unused rest takes addresses, but no memory
constexpr size_t kLeastPopulated = 16 << 10;

size_t RoundUp(size_t bytes) { return (bytes + kAlign - 1) & ~(kAlign - 1); }

}  // namespace

// A block's header; its buffers follow in memory.
struct BufferSlab::Block {
  size_t bytes = 0;
  bool tight = false;
  std::atomic<int> refs{1};  // one for the slab, and one per buffer
};

// A buffer's header; its data follows in memory.
struct BufferSlab::Piece : Buffer {
  Piece(void* data, size_t bytes, Block* b) : Buffer(data, bytes, &Destroy), block(b) {}
  static void Destroy(Buffer* buffer) {
    auto* self = static_cast<Piece*>(buffer);
    Block* const block = self->block;
    self->~Piece();
    BufferSlab::Release(block);
  }
  Block* block;
};

void BufferSlab::Release(Block* block) {
  if (block->refs.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const size_t bytes = block->bytes;
  const bool tight = block->tight;
  block->~Block();
  (tight ? ReturnSmallPages : ReturnMemory)(block, bytes);
}

BufferSlab::~BufferSlab() {
  if (block_ != nullptr) Release(block_);
}

BufferSlab::Block* BufferSlab::TakeBlock(size_t need) {
  const size_t largest = tight_ ? kLargestTight : kLargestBlock;
  const size_t wanted = expected_ > 0 ? kAlign + expected_ : next_bytes_;
  const size_t size = std::max(std::min(wanted, largest), kAlign + need);
  void* memory = (tight_ ? TakeSmallPages : TakeMemory)(size);
  if (memory == nullptr) return nullptr;
  auto* block = new (memory) Block;
  block->bytes = size;
  block->tight = tight_;
  expected_ -= std::min(expected_, size);
  next_bytes_ = std::min(2 * next_bytes_, largest);
  return block;
}

// Asks for huge pages in the next `need` bytes of a tight block, as far as each of them will be
// filled.
void BufferSlab::PreferHugePages(size_t need) {
  const auto begin = reinterpret_cast<uintptr_t>(block_), at = begin + used_;
  const uintptr_t end = begin + block_->bytes;
  for (uintptr_t page = (at + kHugePage - 1) & ~(kHugePage - 1); page < at + need;
       page += kHugePage) {
    const size_t full = given_ + (page - at) + kHugePage;
    if (full > in_all_ || page + kHugePage + kOwnBlock > end) return;
    WantHugePages(reinterpret_cast<void*>(page), kHugePage);
  }
}

BufferRef BufferSlab::Allocate(size_t bytes) {
  static_assert(sizeof(Block) <= kAlign && sizeof(Piece) <= kAlign);
  const size_t need = kAlign + RoundUp(bytes);
  MutexLock lock(mutex_);
  if (bytes >= kOwnBlock) {
    expected_ -= std::min(expected_, need);
    return BufferRef::Allocate(bytes);
  }
  if (block_ == nullptr || block_->bytes - used_ < need) {
    Block* const next = TakeBlock(need);
    if (next == nullptr) return BufferRef();
    if (block_ != nullptr) Release(block_);
    block_ = next;
    used_ = kAlign;
  }
  if (tight_) PreferHugePages(need);
  auto* at = reinterpret_cast<std::byte*>(block_) + used_;
  used_ += need;
  given_ += need;
  block_->refs.fetch_add(1, std::memory_order_relaxed);
  Block* const block = block_;
  lock.Unlock();  // page faults take time, and the piece is the caller's
  if (block->tight && bytes >= kLeastPopulated) PopulatePages(at, need);
  return BufferRef(new (at) Piece(at + kAlign, bytes, block));
}

}  // namespace heddle

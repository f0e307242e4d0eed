#include "core/memory/item_blocks.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

namespace heddle {
namespace {

constexpr size_t kAlign = 64, kMostItems = 16;

// A block's header; its items follow in memory.
struct Block {
  Block(BufferRef m, size_t first) : memory(std::move(m)), used(first) {}
  BufferRef memory;          // where this header lies
  std::atomic<int> refs{1};  // one per item
  std::atomic<size_t> used;  // beyond the block's size when it is full

  void Unref() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    const BufferRef last = std::move(memory);
    this->~Block();
  }
};

// An item's header; its bytes follow in memory.
struct Item : Buffer {
  Item(void* data, size_t bytes, Block* b) : Buffer(data, bytes, &Destroy), block(b) {}
  static void Destroy(Buffer* buffer) {
    auto* const self = static_cast<Item*>(buffer);
    Block* const block = self->block;
    self->~Item();
    block->Unref();
  }
  Block* block;
};

BufferRef ItemAt(Block* block, size_t at, size_t bytes) {
  auto* const begin = static_cast<std::byte*>(block->memory->data()) + at;
  return BufferRef(new (begin) Item(begin + kAlign, bytes, block));
}

}  // namespace

BufferRef TakeItem(size_t bytes, const BufferRef& neighbour, size_t count,
                   TensorAllocator& allocator) {
  static_assert(sizeof(Block) <= kAlign && sizeof(Item) <= kAlign);
  const size_t need = kAlign + (bytes + kAlign - 1) / kAlign * kAlign;
  if (neighbour && neighbour->IsDestroyedBy(&Item::Destroy)) {
    Block* const block = static_cast<const Item*>(neighbour.get())->block;
    const size_t at = block->used.fetch_add(need, std::memory_order_relaxed);
    if (at + need <= block->memory->bytes()) {
      block->refs.fetch_add(1, std::memory_order_relaxed);
      return ItemAt(block, at, bytes);
    }
  }
  const size_t items = std::clamp<size_t>(count, 1, kMostItems);
  BufferRef memory = allocator.Allocate(kAlign + items * need);
  void* const begin = memory->data();
  auto* const block = new (begin) Block(std::move(memory), kAlign + need);
  return ItemAt(block, kAlign, bytes);
}

}  // namespace heddle

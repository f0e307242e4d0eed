#include "memory/token_blocks.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>

#include "memory/pool_allocator.h"

namespace heddle {

struct TokenBlocks::Core {
  enum State : uint8_t {
    kFree,
    kTaken,
    kGone,  // the TokenBlocks is, and so is the block with its last reference
  };
  // In a cache line of its own: different threads take and return different tokens.
  struct alignas(64) Place {
    std::atomic<State> state{kFree};
    size_t planned = 0;
    // Belong to whoever made the state kTaken, until he makes it something else.
    BufferRef memory;  // none yet, or the allocator's
    alignas(Buffer) std::byte block[sizeof(Buffer) + 2 * sizeof(void*)];
  };
  struct Block : Buffer {
    Block(Place& p, Core* c)
        : Buffer(p.memory->data(), p.memory->bytes(), &Return), place(&p), core(c) {}
    static void Return(Buffer* buffer);
    Place* place;
    Core* core;
  };
  static_assert(sizeof(Block) <= sizeof(Place::block));

  Core(std::span<const size_t> bytes, bool p)
      : count(bytes.size()), poison(p), places(std::make_unique<Place[]>(count)) {
    for (size_t t = 0; t < count; ++t) places[t].planned = bytes[t];
  }
  void Unref() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  std::atomic<int> refs{1};  // the TokenBlocks, later the blocks that are out
  const size_t count;
  const bool poison;
  const std::unique_ptr<Place[]> places;
};

void TokenBlocks::Core::Block::Return(Buffer* buffer) {
  auto* const b = static_cast<Block*>(buffer);
  Place& place = *b->place;
  Core* const core = b->core;
  b->~Block();
  if (core->poison) Poison(place.memory->data(), place.memory->bytes());
  State taken = kTaken;
  if (place.state.compare_exchange_strong(taken, kFree, std::memory_order_acq_rel)) return;
  place.memory.reset();
  core->Unref();
}

TokenBlocks::TokenBlocks(TensorAllocator& allocator, std::span<const size_t> bytes, bool poison)
    : allocator_(allocator), core_(new Core(bytes, poison)) {}

TokenBlocks::~TokenBlocks() {
  for (size_t t = 0; t < core_->count; ++t) {
    // Counted before it is told, so that its return cannot be the last reference yet.
    core_->refs.fetch_add(1, std::memory_order_relaxed);
    if (core_->places[t].state.exchange(Core::kGone, std::memory_order_acq_rel) == Core::kTaken)
      continue;
    core_->places[t].memory.reset();
    core_->Unref();
  }
  core_->Unref();
}

BufferRef TokenBlocks::Take(uint32_t token, size_t bytes) {
  Core::Place& place = core_->places[token];
  if (place.state.exchange(Core::kTaken, std::memory_order_acq_rel) == Core::kTaken)
    return allocator_.Allocate(bytes);
  if (!place.memory || place.memory->bytes() < bytes) {
    place.memory.reset();
    try {
      place.memory = allocator_.Allocate(std::max(bytes, place.planned));
    } catch (const std::bad_alloc&) {
      // Other tokens' blocks, or what this one's other values need, may be too much under a limit.
      place.state.store(Core::kFree, std::memory_order_release);
      GiveBack(0);
      return allocator_.Allocate(bytes);
    }
  }
  return BufferRef(new (place.block) Core::Block(place, core_));
}

void TokenBlocks::GiveBack(size_t least) {
  for (size_t t = 0; t < core_->count; ++t) {
    Core::Place& place = core_->places[t];
    Core::State free = Core::kFree;
    if (!place.state.compare_exchange_strong(free, Core::kTaken, std::memory_order_acq_rel))
      continue;
    if (place.memory && place.memory->bytes() >= least) place.memory.reset();
    place.state.store(Core::kFree, std::memory_order_release);
  }
}

size_t TokenBlocks::bytes() const {
  size_t bytes = 0;
  for (size_t t = 0; t < core_->count; ++t)
    if (core_->places[t].memory) bytes += core_->places[t].memory->bytes();
  return bytes;
}

}  // namespace heddle

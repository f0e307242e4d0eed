#include "memory/pool_allocator.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>

#include "core/bytes.h"
#include "core/large_memory.h"

namespace heddle {
namespace {

constexpr size_t kHeader = 64;      // the Buffer object, in front of the data
constexpr size_t kMinBytes = 64;
constexpr int kSteps = 4;           // classes per power of two: at most 25 % is wasted
constexpr int kClasses = 64 * kSteps;

// The smallest class that holds `bytes`, and its size.
int ClassOf(size_t bytes, size_t* size) {
  if (bytes < kMinBytes) bytes = kMinBytes;
  const int log = std::bit_width(bytes - 1) - 1;  // 2^log < bytes <= 2^(log+1)
  const size_t base = size_t{1} << log;
  const size_t step = base / kSteps;
  const int k = static_cast<int>((bytes - base + step - 1) / step);
  *size = base + static_cast<size_t>(k) * step;
  return log * kSteps + k - 1;
}

}  // namespace

void Poison(void* data, size_t bytes) { std::memset(data, 0xff, bytes); }

struct PoolAllocator::Block : Buffer {
  Block(void* data, size_t bytes, Impl* o, int c) : Buffer(data, bytes, &Return), owner(o), cls(c) {}
  static void Return(Buffer* b);
  Impl* owner;
  int cls;
  Block* next = nullptr;
};

struct PoolAllocator::Impl {
  struct Class {
    std::mutex mutex;
    Block* free = nullptr;
  };
  std::atomic<int> refs{1};  // the allocator, and one per block in use
  size_t limit = 0;
  bool poison = false;
  std::atomic<size_t> in_use{0}, cached{0};
  std::array<Class, kClasses> classes;

  void Unref() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      FreeCached();
      delete this;
    }
  }
  void FreeCached() {
    for (Class& c : classes) {
      std::lock_guard lock(c.mutex);
      while (c.free != nullptr) {
        Block* b = c.free;
        c.free = b->next;
        cached.fetch_sub(b->bytes(), std::memory_order_relaxed);
        Delete(b);
      }
    }
  }
  static void Delete(Block* b) {
    const size_t size = kHeader + b->bytes();
    b->~Block();
    ReturnMemory(b, size);
  }
};

void PoolAllocator::Block::Return(Buffer* buffer) {
  auto* b = static_cast<Block*>(buffer);
  Impl* owner = b->owner;
  if (owner->poison) Poison(b->data(), b->bytes());
  owner->in_use.fetch_sub(b->bytes(), std::memory_order_relaxed);
  owner->cached.fetch_add(b->bytes(), std::memory_order_relaxed);
  {
    std::lock_guard lock(owner->classes[b->cls].mutex);
    b->next = owner->classes[b->cls].free;
    owner->classes[b->cls].free = b;
  }
  owner->Unref();
}

PoolAllocator::PoolAllocator(size_t limit, bool poison) : impl_(new Impl) {
  impl_->limit = limit;
  impl_->poison = poison;
}

PoolAllocator::~PoolAllocator() {
  impl_->FreeCached();
  impl_->Unref();
}

BufferRef PoolAllocator::Allocate(size_t bytes) {
  static_assert(sizeof(Block) <= kHeader);
  auto fail = [&](size_t size) {
    throw OutOfMemory("out of memory: " + std::to_string(size) + " bytes asked for, " +
                      std::to_string(bytes_in_use()) + " held by this executor" +
                      (impl_->limit ? ", limit " + std::to_string(impl_->limit) : std::string()));
  };
  if (bytes >= kImpossibleBytes) fail(bytes);
  size_t size = 0;
  const int cls = ClassOf(bytes, &size);
  const size_t held = impl_->in_use.fetch_add(size, std::memory_order_relaxed) + size;
  if (impl_->limit != 0 && held > impl_->limit) {
    impl_->in_use.fetch_sub(size, std::memory_order_relaxed);
    fail(bytes);
  }
  Impl::Class& c = impl_->classes[cls];
  Block* b = nullptr;
  {
    std::lock_guard lock(c.mutex);
    b = c.free;
    if (b != nullptr) c.free = b->next;
  }
  impl_->refs.fetch_add(1, std::memory_order_relaxed);
  if (b != nullptr) {
    impl_->cached.fetch_sub(size, std::memory_order_relaxed);
    Impl* owner = b->owner;
    void* data = b->data();
    b->~Block();
    return BufferRef(new (b) Block(data, size, owner, cls));
  }
  void* raw = TakeMemory(kHeader + size);
  if (raw == nullptr) {
    impl_->in_use.fetch_sub(size, std::memory_order_relaxed);
    impl_->refs.fetch_sub(1, std::memory_order_relaxed);
    fail(bytes);
  }
  void* data = static_cast<std::byte*>(raw) + kHeader;
  if (impl_->poison) Poison(data, size);
  return BufferRef(new (raw) Block(data, size, impl_, cls));
}

void PoolAllocator::Trim() { impl_->FreeCached(); }
size_t PoolAllocator::bytes_in_use() const { return impl_->in_use.load(std::memory_order_relaxed); }
size_t PoolAllocator::bytes_cached() const { return impl_->cached.load(std::memory_order_relaxed); }

}  // namespace heddle

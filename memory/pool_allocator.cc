#include "memory/pool_allocator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "core/memory/bytes.h"
#include "core/memory/large_memory.h"
#include "core/thread_annotations.h"
#include "core/threads/at_fork.h"
#include "core/threads/near_list.h"

namespace heddle {
namespace {

constexpr size_t kHeader = 64;  // the Buffer object, in front of the data
constexpr size_t kMinBytes = 64;
constexpr int kSteps = 4;  // classes per power of two: at most 25 % is wasted
constexpr int kClasses = 64 * kSteps;
constexpr size_t kLooksAtAll = 64 << 10;  // blocks whose size makes adding up all parts cheap
constexpr size_t kFree = 16 << 20;        // may be held free whatever is alive

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
  Block(void* data, size_t bytes, Part* o, int c)
      : Buffer(data, bytes, &Return), owner(o), cls(c) {}
  static void Return(Buffer* b);
  Part* owner;
  int cls;
  Block* next = nullptr;
};

struct alignas(64) PoolAllocator::Part {
  struct Class {
    Mutex mutex;
    Block* free HEDDLE_GUARDED_BY(mutex) = nullptr;
  };
  std::atomic<int> refs{1};  // the allocator, and one per block in use that was taken here
  bool poison = false;
  std::atomic<size_t> in_use{0}, cached{0};
  std::atomic<size_t> peak{0};  // of in_use, about: threads that meet may miss some
  std::array<Class, kClasses> classes;
  // A child process drops its tensors, too.
  const AtFork at_fork{[this]() HEDDLE_NO_THREAD_SAFETY_ANALYSIS {
                         for (Class& c : classes) c.mutex.lock();
                       },
                       [this]() HEDDLE_NO_THREAD_SAFETY_ANALYSIS {
                         for (Class& c : classes) c.mutex.unlock();
                       }};

  void Unref() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      FreeCached();
      delete this;
    }
  }
  // A free block of the class, if there is one.
  Block* Take(int cls) {
    Class& c = classes[static_cast<size_t>(cls)];
    MutexLock lock(c.mutex);
    Block* const b = c.free;
    if (b == nullptr) return nullptr;
    c.free = b->next;
    cached.fetch_sub(b->bytes(), std::memory_order_relaxed);
    return b;
  }
  // Down to so many bytes, large blocks first.
  void FreeCached(size_t most = 0) {
    for (auto c = classes.rbegin(); c != classes.rend(); ++c) {
      if (cached.load(std::memory_order_relaxed) <= most) return;
      MutexLock lock(c->mutex);
      while (c->free != nullptr && cached.load(std::memory_order_relaxed) > most) {
        Block* b = c->free;
        c->free = b->next;
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
  Part* owner = b->owner;
  if (owner->poison) Poison(b->data(), b->bytes());
  owner->in_use.fetch_sub(b->bytes(), std::memory_order_relaxed);
  owner->cached.fetch_add(b->bytes(), std::memory_order_relaxed);
  {
    Part::Class& c = owner->classes[static_cast<size_t>(b->cls)];
    MutexLock lock(c.mutex);
    b->next = c.free;
    c.free = b;
  }
  owner->Unref();
}

namespace {

// A limit is for all memory together: then there is one part.
size_t CountParts(size_t limit) {
  constexpr unsigned kMost = 16;
  return limit != 0 ? 1 : CountProcessors(kMost);
}

}  // namespace

PoolAllocator::PoolAllocator(size_t limit, bool poison)
    : limit_(limit), poison_(poison), parts_([&] {
        std::vector<Part*> parts(CountParts(limit));
        for (Part*& p : parts) {
          p = new Part;
          p->poison = poison;
        }
        return parts;
      }()) {}

PoolAllocator::~PoolAllocator() {
  for (Part* p : parts_) {
    p->FreeCached();
    p->Unref();
  }
}

PoolAllocator::Part& PoolAllocator::Home() const {
  return *parts_[static_cast<size_t>(ThisProcessor()) % parts_.size()];
}

BufferRef PoolAllocator::Take(size_t bytes, bool tight) {
  static_assert(sizeof(Block) <= kHeader);
  auto fail = [&](size_t size) {
    throw OutOfMemory("out of memory: " + std::to_string(size) + " bytes asked for, " +
                      std::to_string(bytes_in_use()) + " held by this executor" +
                      (limit_ ? ", limit " + std::to_string(limit_) : std::string()));
  };
  if (bytes >= kImpossibleBytes) fail(bytes);
  size_t size = 0;
  const int cls = ClassOf(bytes, &size);
  Part& home = Home();
  const size_t held = home.in_use.fetch_add(size, std::memory_order_relaxed) + size;
  if (limit_ != 0 && held > limit_) {
    home.in_use.fetch_sub(size, std::memory_order_relaxed);
    fail(bytes);
  }
  if (held > home.peak.load(std::memory_order_relaxed)) {
    home.peak.store(held, std::memory_order_relaxed);
    NotePeak();
  } else if (size >= kLooksAtAll) {
    NoteMost();
  }
  home.refs.fetch_add(1, std::memory_order_relaxed);
  Block* b = home.Take(cls);
  for (size_t i = 0; b == nullptr && i < parts_.size(); ++i)
    if (parts_[i]->cached.load(std::memory_order_relaxed) > 0) b = parts_[i]->Take(cls);
  if (b != nullptr) {
    void* data = b->data();
    b->~Block();
    return BufferRef(new (b) Block(data, size, &home, cls));
  }
  GiveBack();
  // Poison is written to the last byte.
  const size_t filled = kHeader + (tight && !poison_ ? bytes : size);
  void* raw = tight ? TakeTightMemory(kHeader + size, filled) : TakeMemory(kHeader + size);
  if (raw == nullptr) {
    home.in_use.fetch_sub(size, std::memory_order_relaxed);
    home.refs.fetch_sub(1, std::memory_order_relaxed);
    fail(bytes);
  }
  void* data = static_cast<std::byte*>(raw) + kHeader;
  if (poison_) Poison(data, size);
  return BufferRef(new (raw) Block(data, size, &home, cls));
}

void PoolAllocator::NotePeak() {
  const size_t bytes = bytes_in_use();
  if (bytes > peak_.load(std::memory_order_relaxed)) peak_.store(bytes, std::memory_order_relaxed);
  NoteMost();
}

void PoolAllocator::NoteMost() {
  const size_t bytes = bytes_in_use();
  size_t most = most_.load(std::memory_order_relaxed);
  while (bytes > most && !most_.compare_exchange_weak(most, bytes, std::memory_order_relaxed)) {
  }
}

// The part's present use becomes its peak, so that the next block goes beyond it.
void PoolAllocator::ResetPeak() {
  for (Part* p : parts_)
    p->peak.store(p->in_use.load(std::memory_order_relaxed), std::memory_order_relaxed);
  most_.store(bytes_in_use(), std::memory_order_relaxed);
}

// Sizes that are asked for once would stay for good: with a class each, several times what is
// alive.
void PoolAllocator::GiveBack() {
  NotePeak();
  const size_t most = std::max(kFree, peak_.load(std::memory_order_relaxed));
  for (Part* p : parts_) {
    const size_t free = bytes_cached(), here = p->cached.load(std::memory_order_relaxed);
    if (free <= most) return;
    p->FreeCached(here - std::min(here, free - most));
  }
}

void PoolAllocator::Trim() {
  for (Part* p : parts_) p->FreeCached();
}

size_t PoolAllocator::bytes_in_use() const {
  size_t bytes = 0;
  for (const Part* p : parts_) bytes += p->in_use.load(std::memory_order_relaxed);
  return bytes;
}

size_t PoolAllocator::bytes_cached() const {
  size_t bytes = 0;
  for (const Part* p : parts_) bytes += p->cached.load(std::memory_order_relaxed);
  return bytes;
}

}  // namespace heddle

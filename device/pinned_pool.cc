#include "device/pinned_pool.h"

#include <bit>
#include <map>
#include <vector>

#include "core/thread_annotations.h"

namespace heddle {
namespace {

constexpr size_t kLeastPinned = 4096;
// The most that is cached; memory above this is returned to the device at once.
constexpr size_t kMostCached = size_t{256} << 20;

// Sizes in steps of a quarter of the power of two below.
size_t PinnedSizeClass(size_t bytes) {
  if (bytes <= kLeastPinned) return kLeastPinned;
  const size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

}  // namespace

struct PinnedPool::Impl : std::enable_shared_from_this<Impl> {
  struct Block : Buffer {
    Block(void* data, size_t bytes, std::shared_ptr<Impl> i)
        : Buffer(data, bytes, &Destroy), impl(std::move(i)) {}
    static void Destroy(Buffer* b) {
      auto* block = static_cast<Block*>(b);
      const auto impl = block->impl;
      impl->Release(block->data(), block->bytes());
      delete block;
    }
    std::shared_ptr<Impl> impl;
  };

  explicit Impl(std::shared_ptr<Device> d) : device(std::move(d)) {}

  void Release(void* data, size_t bytes) {
    {
      MutexLock lock(mutex);
      used.erase(reinterpret_cast<uintptr_t>(data));
      if (!closed && cached + bytes <= kMostCached) {
        cached += bytes;
        free[bytes].push_back(data);
        return;
      }
    }
    device->FreeHost(data);
  }
  void Trim() {
    std::map<size_t, std::vector<void*>> gone;
    {
      MutexLock lock(mutex);
      gone.swap(free);
      cached = 0;
    }
    for (auto& [bytes, blocks] : gone)
      for (void* data : blocks) device->FreeHost(data);
  }

  const std::shared_ptr<Device> device;
  Mutex mutex;
  std::map<size_t, std::vector<void*>> free HEDDLE_GUARDED_BY(mutex);
  std::map<uintptr_t, size_t> used HEDDLE_GUARDED_BY(mutex);  // address -> bytes
  size_t cached HEDDLE_GUARDED_BY(mutex) = 0;
  bool closed HEDDLE_GUARDED_BY(mutex) = false;
};

PinnedPool::PinnedPool(std::shared_ptr<Device> device)
    : impl_(std::make_shared<Impl>(std::move(device))) {}

PinnedPool::~PinnedPool() {
  {
    MutexLock lock(impl_->mutex);
    impl_->closed = true;
  }
  impl_->Trim();
}

BufferRef PinnedPool::Allocate(size_t bytes) {
  const size_t size = PinnedSizeClass(bytes);
  void* data = nullptr;
  {
    MutexLock lock(impl_->mutex);
    if (auto& blocks = impl_->free[size]; !blocks.empty()) {
      data = blocks.back();
      blocks.pop_back();
      impl_->cached -= size;
    }
  }
  if (data == nullptr) {
    auto made = impl_->device->AllocateHost(size);
    if (!made.ok()) return BufferRef();
    data = *made;
  }
  MutexLock lock(impl_->mutex);
  impl_->used[reinterpret_cast<uintptr_t>(data)] = size;
  return BufferRef(new Impl::Block(data, size, impl_));
}

bool PinnedPool::Holds(const void* memory, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  MutexLock lock(impl_->mutex);
  const auto next = impl_->used.upper_bound(at);
  if (next == impl_->used.begin()) return false;
  const auto& [begin, size] = *std::prev(next);
  return at + bytes <= begin + size;
}

void PinnedPool::Trim() { impl_->Trim(); }

}  // namespace heddle

#include "device/caching_allocator.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "core/thread_annotations.h"

namespace heddle {
namespace {

constexpr size_t kLeast = 512;

// Sizes in steps of a quarter of the power of two below.
size_t SizeClass(size_t bytes) {
  if (bytes <= kLeast) return kLeast;
  const size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

}  // namespace

struct CachingAllocator::Impl : std::enable_shared_from_this<Impl> {
  struct Block : Buffer {
    Block(void* data, size_t bytes, std::shared_ptr<Impl> i, Stream* s)
        : Buffer(data, bytes, &Destroy), impl(std::move(i)), stream(s) {}
    static void Destroy(Buffer* b) {
      auto* block = static_cast<Block*>(b);
      const auto impl = block->impl;
      impl->Release(*block);
      delete block;
    }
    std::shared_ptr<Impl> impl;
    Stream* stream;
    std::vector<Stream*> users;  // other streams that use it
  };
  // Released memory that other streams may still use.
  struct Pending {
    void* data;
    size_t bytes;
    Stream* stream;
    std::vector<std::unique_ptr<Event>> events;
  };

  explicit Impl(std::shared_ptr<Device> d) : device(std::move(d)) {}

  std::unique_ptr<Event> TakeEvent() HEDDLE_REQUIRES(mutex) {
    if (!idle_events.empty()) {
      auto event = std::move(idle_events.back());
      idle_events.pop_back();
      return event;
    }
    auto made = device->NewEvent(false);
    return made.ok() ? *std::move(made) : nullptr;
  }

  void Release(Block& block) HEDDLE_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    in_use -= block.bytes();
    if (closed) return device->Free(block.data());
    Pending p{block.data(), block.bytes(), block.stream, {}};
    for (Stream* user : block.users) {
      auto event = TakeEvent();
      if (event != nullptr && user->Record(*event).ok())
        p.events.push_back(std::move(event));
      else
        (void)user->Synchronize();  // there is no event: wait now
    }
    cached += p.bytes;
    if (p.events.empty())
      free[p.stream][p.bytes].push_back(p.data);
    else
      pending.push_back(std::move(p));
  }

  // Memory whose other users are done becomes free.
  void Collect() HEDDLE_REQUIRES(mutex) {
    std::erase_if(pending, [&](Pending& p) HEDDLE_REQUIRES(mutex) {
      for (const auto& event : p.events)
        if (!event->Reached()) return false;
      for (auto& event : p.events) idle_events.push_back(std::move(event));
      free[p.stream][p.bytes].push_back(p.data);
      return true;
    });
  }

  void FreeCached() HEDDLE_REQUIRES(mutex) {
    for (auto& [stream, classes] : free) {
      if (stream != nullptr && !closed)
        stream->WaitUntilDone();  // the stream may belong to another run
      for (auto& [bytes, blocks] : classes)
        for (void* data : blocks) {
          device->Free(data);
          cached -= bytes;
        }
    }
    free.clear();
  }

  // With everything it waits for.
  void Trim() HEDDLE_REQUIRES(mutex) {
    for (Pending& p : pending)
      for (auto& event : p.events) (void)event->Wait();
    Collect();
    FreeCached();
  }

  const std::shared_ptr<Device> device;
  Mutex mutex;
  std::map<Stream*, std::map<size_t, std::vector<void*>>> free HEDDLE_GUARDED_BY(mutex);
  std::vector<Pending> pending HEDDLE_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Event>> idle_events HEDDLE_GUARDED_BY(mutex);
  size_t in_use HEDDLE_GUARDED_BY(mutex) = 0;
  size_t peak HEDDLE_GUARDED_BY(mutex) = 0;
  size_t cached HEDDLE_GUARDED_BY(mutex) = 0;
  bool closed HEDDLE_GUARDED_BY(mutex) = false;
};

CachingAllocator::CachingAllocator(std::shared_ptr<Device> device)
    : impl_(std::make_shared<Impl>(std::move(device))) {}

CachingAllocator::~CachingAllocator() { Close(); }

Result<BufferRef> CachingAllocator::Allocate(size_t bytes, Stream* stream) {
  Impl& a = *impl_;
  // Buffers that belong to no stream are large or live long: they are not rounded up.
  const size_t size = stream == nullptr ? std::max<size_t>(bytes, 1) : SizeClass(bytes);
  MutexLock lock(a.mutex);
  a.Collect();
  void* data = nullptr;
  auto& blocks = a.free[stream][size];
  if (!blocks.empty()) {
    data = blocks.back();
    if (const auto byte = a.device->scrub(); byte && stream != nullptr)
      HEDDLE_RETURN_IF_ERROR(stream->Fill(data, *byte, size, 0));
    blocks.pop_back();
    a.cached -= size;
  } else {
    auto made = a.device->Allocate(size);
    if (!made.ok() && made.status().code() == StatusCode::kResourceExhausted && a.cached > 0) {
      a.Trim();
      made = a.device->Allocate(size);
    }
    if (!made.ok()) return made.status();
    data = *made;
  }
  a.in_use += size;
  a.peak = std::max(a.peak, a.in_use);
  return BufferRef(new Impl::Block(data, size, impl_, stream));
}

void CachingAllocator::Use(Buffer& buffer, Stream& stream) {
  auto& block = static_cast<Impl::Block&>(buffer);
  if (block.stream == nullptr || block.stream == &stream) return;
  if (std::find(block.users.begin(), block.users.end(), &stream) == block.users.end())
    block.users.push_back(&stream);
}

Status CachingAllocator::PassOn(Buffer& buffer, Stream& stream) {
  auto& block = static_cast<Impl::Block&>(buffer);
  Impl& a = *block.impl;
  MutexLock lock(a.mutex);
  block.users.push_back(std::exchange(block.stream, &stream));
  for (Stream* user : std::exchange(block.users, {})) {
    if (user == &stream) continue;
    auto event = a.TakeEvent();
    if (event == nullptr) {
      HEDDLE_RETURN_IF_ERROR(user->Synchronize());
      continue;
    }
    HEDDLE_RETURN_IF_ERROR(user->Record(*event));
    HEDDLE_RETURN_IF_ERROR(stream.WaitFor(*event));
    a.idle_events.push_back(std::move(event));
  }
  const auto byte = a.device->scrub();
  return byte ? stream.Fill(block.data(), *byte, block.bytes(), 0) : Status::Ok();
}

void CachingAllocator::Trim() {
  MutexLock lock(impl_->mutex);
  impl_->Trim();
}

void CachingAllocator::Close() {
  MutexLock lock(impl_->mutex);
  if (impl_->closed) return;
  impl_->closed = true;
  for (auto& p : impl_->pending) impl_->free[p.stream][p.bytes].push_back(p.data);
  impl_->pending.clear();
  impl_->idle_events.clear();
  impl_->FreeCached();
}

size_t CachingAllocator::bytes_in_use() const {
  MutexLock lock(impl_->mutex);
  return impl_->in_use;
}
size_t CachingAllocator::bytes_cached() const {
  MutexLock lock(impl_->mutex);
  return impl_->cached;
}
void CachingAllocator::ResetPeak() {
  MutexLock lock(impl_->mutex);
  impl_->peak = impl_->in_use;
}
size_t CachingAllocator::peak_bytes_in_use() const {
  MutexLock lock(impl_->mutex);
  return impl_->peak;
}

}  // namespace heddle

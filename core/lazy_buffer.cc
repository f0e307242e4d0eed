#include "core/lazy_buffer.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/error.h"
#include "core/large_memory.h"

namespace heddle {
namespace {

class LazyBuffer final : public Buffer {
 public:
  LazyBuffer(void* data, size_t bytes, MakeContents contents, ContentsOrigin origin)
      : Buffer(data, bytes, &Destroy),
        contents_(std::make_shared<const MakeContents>(std::move(contents))),
        origin_(std::move(origin)) {}

  // nullptr where the tensor's memory is of another kind.
  static LazyBuffer* Of(const Tensor& t) {
    Buffer* const b = t.buffer().get();
    return b != nullptr && b->IsDestroyedBy(&Destroy) ? static_cast<LazyBuffer*>(b) : nullptr;
  }

  // Whoever sees true sees the contents, too.
  bool resident() const { return resident_.load(std::memory_order_acquire); }
  const std::shared_ptr<const MakeContents>& contents() const { return contents_; }
  const ContentsOrigin& origin() const { return origin_; }

  Status BringIn() {
    std::lock_guard lock(mutex_);
    if (resident_.load(std::memory_order_relaxed)) return Status::Ok();
    if (!CommitMemory(data(), bytes()))
      return ResourceExhausted("no memory for ", bytes(), " bytes of a parameter");
    HEDDLE_RETURN_IF_ERROR((*contents_)(data(), 0, bytes()));
    resident_.store(true, std::memory_order_release);
    return Status::Ok();
  }

 private:
  static void Destroy(Buffer* b) {
    auto* self = static_cast<LazyBuffer*>(b);
    ReleaseMemory(self->data(), self->bytes());
    delete self;
  }

  const std::shared_ptr<const MakeContents> contents_;
  const ContentsOrigin origin_;
  std::mutex mutex_;
  std::atomic<bool> resident_{false};
};

// Whose absent memory `t` is the whole of; nullptr when it is none or only a part.
const LazyBuffer* AllAbsent(const Tensor& t) {
  const LazyBuffer* lazy = LazyBuffer::Of(t);
  const bool whole = lazy != nullptr && t.raw() == lazy->data() && t.bytes() == lazy->bytes();
  return whole && !lazy->resident() ? lazy : nullptr;
}

}  // namespace

BufferRef MakeLazyBuffer(size_t bytes, MakeContents contents, ContentsOrigin origin) {
  void* const data = ReserveMemory(bytes);
  if (data == nullptr) return BufferRef();
  return BufferRef(new LazyBuffer(data, bytes, std::move(contents), std::move(origin)));
}

bool IsAbsent(const Tensor& t) {
  const LazyBuffer* lazy = LazyBuffer::Of(t);
  return lazy != nullptr && !lazy->resident();
}

Status MakeResident(const Tensor& t) {
  LazyBuffer* lazy = LazyBuffer::Of(t);
  return lazy == nullptr || lazy->resident() ? Status::Ok() : lazy->BringIn();
}

std::shared_ptr<const MakeContents> ContentsToCome(const Tensor& t) {
  const LazyBuffer* const lazy = AllAbsent(t);
  return lazy != nullptr ? lazy->contents() : nullptr;
}

ContentsOrigin OriginOf(const Tensor& t) {
  const LazyBuffer* const lazy = AllAbsent(t);
  return lazy != nullptr ? lazy->origin() : ContentsOrigin();
}

namespace {

// For what is only a part of its memory, or has come by now.
void NeedResident(const Tensor& t) {
  if (const Status s = MakeResident(t); !s.ok()) throw std::runtime_error(std::string(s.message()));
}

void Fill(const MakeContents& contents, size_t begin, Tensor* to) {
  if (!to->initialized()) throw std::bad_alloc();
  const Status s = contents(to->mutable_raw(), begin, begin + to->bytes());
  if (!s.ok()) throw std::runtime_error(std::string(s.message()));
}

// One piece after another is taken and given back while kernels are prepared. Where an alignment is
// asked for, some C libraries do not find the same place again, and the heap is left with holes.
BufferRef Room(size_t bytes) {
  constexpr size_t kAlign = 64;
  void* const memory = std::malloc(bytes + kAlign);
  if (memory == nullptr) return BufferRef();
  const uintptr_t before = -reinterpret_cast<uintptr_t>(memory) & (kAlign - 1);
  void* const aligned = static_cast<char*>(memory) + before;
  return BufferRef::Wrap(aligned, bytes, [memory] { std::free(memory); });
}

}  // namespace

BorrowedContents::BorrowedContents(const Tensor& source) : tensor_(source) {
  if (!IsAbsent(source)) return;
  if (const auto contents = ContentsToCome(source)) {
    tensor_ = Tensor::Empty(source.dtype(), source.shape());
    Fill(*contents, 0, &tensor_);
  } else {
    NeedResident(source);
  }
}

BorrowedStretches::BorrowedStretches(const Tensor& source)
    : source_(source), contents_(ContentsToCome(source)) {
  if (!contents_) NeedResident(source);
}

const Tensor& BorrowedStretches::Read(int64_t first, int64_t count) {
  const size_t size = SizeOf(source_.dtype()), begin = static_cast<size_t>(first) * size;
  if (!contents_) {
    const auto at = static_cast<const std::byte*>(source_.raw()) -
                    static_cast<const std::byte*>(source_.buffer()->data());
    stretch_ = Tensor(source_.dtype(), {count}, source_.buffer(), static_cast<size_t>(at) + begin);
    return stretch_;
  }
  const size_t bytes = static_cast<size_t>(count) * size;
  if (!room_ || room_->bytes() < bytes) {
    stretch_ = Tensor();
    room_.reset();
    room_ = Room(bytes);
    if (!room_) throw std::bad_alloc();
  }
  stretch_ = Tensor(source_.dtype(), {count}, room_);
  Fill(*contents_, begin, &stretch_);
  return stretch_;
}

}  // namespace heddle

#include "core/memory/lazy_buffer.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/memory/contents_error.h"
#include "core/memory/large_memory.h"
#include "core/thread_annotations.h"

namespace heddle {
namespace {

class LazyBuffer final : public Buffer {
 public:
  // `before`: number of reserved bytes before `data`.
  LazyBuffer(void* data, size_t bytes, size_t before, MakeContents contents, ContentsOrigin origin,
             FileStretch where)
      : Buffer(data, bytes, &Destroy),
        contents_(std::make_shared<const MakeContents>(std::move(contents))),
        origin_(std::move(origin)),
        where_(std::move(where)),
        before_(before) {}

  // nullptr: the tensor's memory is of another kind.
  static LazyBuffer* Of(const Tensor& t) {
    Buffer* const b = t.buffer().get();
    return b != nullptr && b->IsDestroyedBy(&Destroy) ? static_cast<LazyBuffer*>(b) : nullptr;
  }

  // Acquire: a thread that reads true also sees the contents.
  bool resident() const { return resident_.load(std::memory_order_acquire); }
  const std::shared_ptr<const MakeContents>& contents() const { return contents_; }
  const ContentsOrigin& origin() const { return origin_; }

  Status BringIn() {
    MutexLock lock(mutex_);
    if (resident_.load(std::memory_order_relaxed)) return Status::Ok();
    // Falls back to reading, since not every file system can map files.
    const bool mapped = LiesAligned(where_) &&
                        where_.file->Map(begin(), before_ + bytes(), where_.from - before_).ok();
    if (!mapped) {
      if (!CommitMemory(begin(), before_ + bytes()))
        return ResourceExhausted("no memory for ", bytes(), " bytes of a parameter");
      HEDDLE_RETURN_IF_ERROR((*contents_)(data(), 0, bytes()));
    }
    resident_.store(true, std::memory_order_release);
    return Status::Ok();
  }

  // The contents as they are in the file. An empty reference if that is not possible: contents that
  // are in memory may have been written to since.
  BufferRef InFile() {
    MutexLock lock(mutex_);
    if (!where_.file || resident_.load(std::memory_order_relaxed)) return BufferRef();
    if (in_file_) return in_file_;
    const size_t before = where_.from % PageBytes(), all = before + bytes();
    void* const begin = ReserveMemory(all);
    if (begin == nullptr) return BufferRef();
    BufferRef made = BufferRef::Wrap(static_cast<std::byte*>(begin) + before, bytes(),
                                     [begin, all] { ReleaseMemory(begin, all); });
    if (where_.file->Map(begin, all, where_.from - before).ok()) in_file_ = std::move(made);
    return in_file_;
  }

  // Whether the contents may be mapped where kernels expect them: aligned to the vectors of any
  // library that uses its operands directly.
  static bool LiesAligned(const FileStretch& where) {
    constexpr size_t kVector = 16;
    return where.file != nullptr && where.from % kVector == 0;
  }

 private:
  static void Destroy(Buffer* b) {
    auto* self = static_cast<LazyBuffer*>(b);
    ReleaseMemory(self->begin(), self->before_ + self->bytes());
    delete self;
  }
  std::byte* begin() const { return static_cast<std::byte*>(data()) - before_; }

  const std::shared_ptr<const MakeContents> contents_;
  const ContentsOrigin origin_;
  const FileStretch where_;
  const size_t before_;
  Mutex mutex_;  // held while the contents are read
  BufferRef in_file_ HEDDLE_GUARDED_BY(mutex_);
  std::atomic<bool> resident_{false};
};

constexpr size_t kCacheLine = 64;

}  // namespace

// Threads: any, except Take.
class LazyShelf::Memory {
 public:
  Memory(size_t bytes, ReadAgain again)
      : again_(std::move(again)),
        bytes_((bytes + page_ - 1) / page_ * page_),
        begin_(bytes_ > 0 ? static_cast<std::byte*>(ReserveMemory(bytes_)) : nullptr),
        kept_(bytes_ / page_, false) {
    if (begin_ == nullptr || !CommitMemory(begin_, bytes_)) return;
    PopulatePages(begin_, bytes_);
    room_ = bytes_;
  }
  ~Memory() {
    if (begin_ != nullptr) ReleaseMemory(begin_, bytes_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* Take(size_t bytes) {
    const size_t need = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
    if (need > room_) return nullptr;
    void* const at = begin_ + (bytes_ - room_);
    room_ -= need;
    return at;
  }
  // Makes the contents at `at` permanent, and sets `resident`.
  Status Keep(void* at, size_t bytes, size_t place, std::atomic<bool>* resident) {
    MutexLock lock(mutex_);
    if (resident->load(std::memory_order_relaxed)) return Status::Ok();
    for (size_t page = PageOf(at), last = PageOf(at, bytes - 1); page <= last; ++page) {
      if (dropped_ && !kept_[page] && !CommitMemory(begin_ + page * page_, page_))
        return ResourceExhausted("no memory for ", bytes, " bytes of a parameter");
      kept_[page] = true;
    }
    if (dropped_) HEDDLE_RETURN_IF_ERROR(again_(at, place, bytes));
    resident->store(true, std::memory_order_release);
    return Status::Ok();
  }
  // Copies `bytes` bytes: from `at` if they are there, else read again from `place`.
  Status Copy(const void* at, size_t bytes, size_t place, void* to) {
    {
      MutexLock lock(mutex_);
      if (!dropped_) {
        std::memcpy(to, at, bytes);
        return Status::Ok();
      }
    }
    return again_(to, place, bytes);
  }
  void Drop() {
    MutexLock lock(mutex_);
    if (std::exchange(dropped_, true)) return;
    for (size_t page = 0, end; page < kept_.size(); page = end) {
      for (end = page + 1; end < kept_.size() && kept_[end] == kept_[page];) ++end;
      if (!kept_[page]) DecommitMemory(begin_ + page * page_, (end - page) * page_);
    }
  }

 private:
  size_t PageOf(const void* at, size_t more = 0) const {
    return (static_cast<size_t>(static_cast<const std::byte*>(at) - begin_) + more) / page_;
  }
  const ReadAgain again_;
  const size_t page_ = PageBytes();
  const size_t bytes_;
  std::byte* const begin_;
  size_t room_ = 0;  // bytes left at the end
  Mutex mutex_;
  // By page: it has permanent contents.
  std::vector<bool> kept_ HEDDLE_GUARDED_BY(mutex_);
  // The other pages have been given back.
  bool dropped_ HEDDLE_GUARDED_BY(mutex_) = false;
};

// Kept small, since there are many of these.
class LazyShelf::Piece final : public Buffer {
 public:
  Piece(void* data, size_t bytes, size_t place, std::shared_ptr<Memory> memory)
      : Buffer(data, bytes, &Destroy), memory_(std::move(memory)), place_(place) {}

  // nullptr: the tensor's memory is of another kind.
  static Piece* Of(const Tensor& t) {
    Buffer* const b = t.buffer().get();
    return b != nullptr && b->IsDestroyedBy(&Destroy) ? static_cast<Piece*>(b) : nullptr;
  }
  bool resident() const { return resident_.load(std::memory_order_acquire); }
  Status BringIn() {
    return resident() ? Status::Ok() : memory_->Keep(data(), bytes(), place_, &resident_);
  }
  std::shared_ptr<const MakeContents> contents() const {
    return std::make_shared<const MakeContents>(
        [memory = memory_, at = static_cast<const std::byte*>(data()), place = place_](
            void* to, size_t begin, size_t end) {
          return memory->Copy(at + begin, end - begin, place + begin, to);
        });
  }
  void DropOthers() const { memory_->Drop(); }

 private:
  static void Destroy(Buffer* b) { delete static_cast<Piece*>(b); }

  const std::shared_ptr<Memory> memory_;
  const size_t place_;
  std::atomic<bool> resident_{false};
};

LazyShelf::LazyShelf(size_t bytes, ReadAgain again)
    : memory_(std::make_shared<Memory>(bytes, std::move(again))) {}

BufferRef LazyShelf::Add(size_t bytes, size_t place) {
  void* const at = bytes > 0 ? memory_->Take(bytes) : nullptr;
  return at != nullptr ? BufferRef(new Piece(at, bytes, place, memory_)) : BufferRef();
}

bool LazyShelf::IsWaiting(const Tensor& t) {
  const Piece* const piece = Piece::Of(t);
  return piece != nullptr && !piece->resident();
}

void LazyShelf::DropWaiting(const Tensor& t) {
  if (const Piece* const piece = Piece::Of(t)) piece->DropOthers();
}

namespace {

bool IsWholeOf(const Tensor& t, const Buffer& b) {
  return t.raw() == b.data() && t.bytes() == b.bytes();
}

}  // namespace

BufferRef MakeLazyBuffer(size_t bytes, MakeContents contents, ContentsOrigin origin,
                         FileStretch where) {
  if (bytes < kLeastMapped || !where.file || !where.file->CanMap()) where = {};
  const size_t before = LazyBuffer::LiesAligned(where) ? where.from % PageBytes() : 0;
  void* const begin = ReserveMemory(before + bytes);
  if (begin == nullptr) return BufferRef();
  return BufferRef(new LazyBuffer(static_cast<std::byte*>(begin) + before, bytes, before,
                                  std::move(contents), std::move(origin), std::move(where)));
}

bool IsAbsent(const Tensor& t) {
  const LazyBuffer* lazy = LazyBuffer::Of(t);
  return lazy != nullptr ? !lazy->resident() : LazyShelf::IsWaiting(t);
}

Status MakeResident(const Tensor& t) {
  if (LazyBuffer* lazy = LazyBuffer::Of(t))
    return lazy->resident() ? Status::Ok() : lazy->BringIn();
  LazyShelf::Piece* const piece = LazyShelf::Piece::Of(t);
  return piece != nullptr ? piece->BringIn() : Status::Ok();
}

Tensor ContentsInFile(const Tensor& t) {
  LazyBuffer* const lazy = LazyBuffer::Of(t);
  if (lazy == nullptr || !IsWholeOf(t, *lazy)) return Tensor();
  BufferRef memory = lazy->InFile();
  if (!memory) return Tensor();
  Tensor found(t.dtype(), t.shape(), std::move(memory));
  if (t.has_lod()) found.set_lod(t.lod());
  return found;
}

std::shared_ptr<const MakeContents> ContentsToCome(const Tensor& t) {
  if (!IsAbsent(t) || !IsWholeOf(t, *t.buffer().get())) return nullptr;
  const LazyBuffer* const lazy = LazyBuffer::Of(t);
  return lazy != nullptr ? lazy->contents() : LazyShelf::Piece::Of(t)->contents();
}

ContentsOrigin OriginOf(const Tensor& t) {
  const LazyBuffer* const lazy = LazyBuffer::Of(t);
  return lazy != nullptr && !lazy->resident() && IsWholeOf(t, *lazy) ? lazy->origin()
                                                                     : ContentsOrigin();
}

namespace {

// For tensors that are part of their memory, or whose contents are in memory by now.
void NeedResident(const Tensor& t) {
  if (Status s = MakeResident(t); !s.ok()) throw ContentsError(std::move(s), t.buffer().get());
}

void Fill(const Tensor& source, const MakeContents& contents, size_t begin, Tensor* to) {
  if (!to->initialized()) throw std::bad_alloc();
  Status s = contents(to->mutable_raw(), begin, begin + to->bytes());
  if (!s.ok()) throw ContentsError(std::move(s), source.buffer().get());
}

// Without an alignment: while kernels are prepared, one piece after another is allocated and freed,
// and some C libraries do not reuse aligned blocks, which fragments the heap.
BufferRef Room(size_t bytes) {
  void* const memory = std::malloc(bytes + kCacheLine);
  if (memory == nullptr) return BufferRef();
  const uintptr_t before = -reinterpret_cast<uintptr_t>(memory) & (kCacheLine - 1);
  void* const aligned = static_cast<char*>(memory) + before;
  return BufferRef::Wrap(aligned, bytes, [memory] { std::free(memory); });
}

}  // namespace

BorrowedContents::BorrowedContents(const Tensor& source) : tensor_(source) {
  if (!IsAbsent(source)) return;
  if (const auto contents = ContentsToCome(source)) {
    tensor_ = Tensor::Empty(source.dtype(), source.shape());
    Fill(source, *contents, 0, &tensor_);
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
  Fill(source_, *contents_, begin, &stretch_);
  return stretch_;
}

}  // namespace heddle

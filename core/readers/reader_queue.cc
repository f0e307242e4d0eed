#include "heddle/reader_queue.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/readers/reader.h"
#include "core/thread_annotations.h"

namespace heddle {

namespace {
constexpr std::chrono::milliseconds kLook{5};  // between looks at whether a run is to end
constexpr std::string_view kAtEnd = "the data are at their end";
}  // namespace

struct ReaderQueue::State {
  explicit State(size_t most) : capacity(std::max<size_t>(1, most)) {}
  const size_t capacity;
  mutable Mutex mutex;
  CondVar changed;
  std::deque<Batch> batches HEDDLE_GUARDED_BY(mutex);
  bool closed HEDDLE_GUARDED_BY(mutex) = false;
  size_t generation HEDDLE_GUARDED_BY(mutex) = 0;
};

ReaderQueue::ReaderQueue(size_t capacity) : state_(std::make_unique<State>(capacity)) {}
ReaderQueue::~ReaderQueue() = default;

std::optional<bool> ReaderQueue::PushUntil(Batch batch,
                                           std::chrono::steady_clock::time_point until) {
  // A tensor that borrows its memory is copied, since the memory may be gone when it is read.
  for (Tensor& t : batch)
    if (t.initialized() && !t.buffer()) t = t.Clone();
  State& s = *state_;
  MutexLock lock(s.mutex);
  const size_t generation = s.generation;
  while (!s.closed && s.generation == generation && s.batches.size() >= s.capacity)
    if (!s.changed.WaitUntil(s.mutex, until) && std::chrono::steady_clock::now() >= until)
      return std::nullopt;
  if (s.closed || s.generation != generation) return false;
  s.batches.push_back(std::move(batch));
  s.changed.NotifyAll();
  return true;
}

bool ReaderQueue::Push(Batch batch) {
  constexpr std::chrono::hours kForever{24 * 365};
  return *PushUntil(std::move(batch), std::chrono::steady_clock::now() + kForever);
}

void ReaderQueue::Close() {
  MutexLock lock(state_->mutex);
  state_->closed = true;
  state_->changed.NotifyAll();
}

void ReaderQueue::Reset() {
  std::deque<Batch> dropped;  // destroyed without the mutex
  MutexLock lock(state_->mutex);
  dropped.swap(state_->batches);
  state_->closed = false;
  ++state_->generation;
  state_->changed.NotifyAll();
}

size_t ReaderQueue::size() const {
  MutexLock lock(state_->mutex);
  return state_->batches.size();
}
size_t ReaderQueue::capacity() const { return state_->capacity; }
bool ReaderQueue::closed() const {
  MutexLock lock(state_->mutex);
  return state_->closed;
}
size_t ReaderQueue::generation() const {
  MutexLock lock(state_->mutex);
  return state_->generation;
}

Result<std::optional<ReaderQueue::Batch>> ReaderQueue::Pop(
    const std::function<Status()>& interrupted, size_t* generation) {
  State& s = *state_;
  MutexLock lock(s.mutex);
  size_t unused = 0;
  size_t& now = generation != nullptr ? *generation : unused;
  while (s.batches.empty()) {
    now = s.generation;
    if (s.closed) return std::optional<Batch>();
    if (interrupted) {
      lock.Unlock();  // it may call the host, which may call the queue
      const Status status = interrupted();
      lock.Lock();
      if (!status.ok()) return status;
      if (!s.batches.empty() || s.closed) continue;
    }
    s.changed.WaitUntil(s.mutex, std::chrono::steady_clock::now() + kLook);
  }
  now = s.generation;
  std::optional<Batch> batch(std::move(s.batches.front()));
  s.batches.pop_front();
  s.changed.NotifyAll();
  return batch;
}

Value ReaderValue(std::shared_ptr<ReaderQueue> queue) {
  Value value;
  value.mutable_other() = std::move(queue);
  return value;
}

Status EndOfData() { return Status(StatusCode::kOutOfRange, std::string(kAtEnd)); }

bool IsEndOfData(const Status& status) {
  return status.code() == StatusCode::kOutOfRange && status.message() == kAtEnd;
}

}  // namespace heddle

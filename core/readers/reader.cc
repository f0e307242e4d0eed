#include "core/readers/reader.h"

#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/guard.h"
#include "core/thread_annotations.h"

namespace heddle {
namespace {

class QueueReader final : public Reader {
 public:
  QueueReader(std::shared_ptr<ReaderQueue> queue, std::vector<ReaderSlot> slots)
      : queue_(std::move(queue)), slots_(std::move(slots)) {}

  Result<std::optional<Batch>> Next(const std::function<Status()>& interrupted,
                                    size_t* generation) override {
    HEDDLE_ASSIGN_OR_RETURN(std::optional<Batch> batch, queue_->Pop(interrupted, generation));
    if (batch) HEDDLE_RETURN_IF_ERROR(Check(*batch));
    return batch;
  }

  const std::shared_ptr<ReaderQueue>& queue() const override { return queue_; }

 private:
  Status Check(const Batch& batch) const {
    if (slots_.empty()) return Status::Ok();
    if (batch.size() != slots_.size())
      return InvalidArgument("the reader's queue was given a batch of ", batch.size(),
                             " tensors; expected ", slots_.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      const ReaderSlot& slot = slots_[i];
      const Tensor& t = batch[i];
      bool fits = slot.dtype == DType::kUnknown || t.dtype() == slot.dtype;
      if (slot.shape.known_rank()) {
        fits = fits && t.shape().rank() == slot.shape.rank();
        for (int d = 0; fits && d < slot.shape.rank(); ++d)
          fits = slot.shape[d] < 0 || slot.shape[d] == t.shape()[d];
      }
      if (!fits)
        return InvalidArgument("tensor ", i, " of a batch in the reader's queue is ",
                               Name(t.dtype()), " ", t.shape().ToString(), "; expected ",
                               Name(slot.dtype), " ", slot.shape.ToString());
    }
    return Status::Ok();
  }

  const std::shared_ptr<ReaderQueue> queue_;
  const std::vector<ReaderSlot> slots_;
};

class BufferedReader final : public Reader {
 public:
  explicit BufferedReader(std::shared_ptr<Reader> from)
      : from_(std::move(from)), thread_([this] { Work(); }) {}
  ~BufferedReader() override {
    {
      MutexLock lock(mutex_);
      stop_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

  Result<std::optional<Batch>> Next(const std::function<Status()>& interrupted,
                                    size_t* generation) override {
    std::deque<Ready> dropped;  // destroyed after the mutex is released
    MutexLock lock(mutex_);
    for (;;) {
      DropOld(&dropped);
      if (!ready_.empty()) break;
      if (interrupted) {
        lock.Unlock();  // the queue may call the host, which may call this
        const Status status = interrupted();
        lock.Lock();
        if (!status.ok()) return status;
        if (!ready_.empty()) continue;
      }
      changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kLook);
    }
    if (generation != nullptr) *generation = ready_.front().generation;
    // The end stays in the list until a reset.
    if (ready_.size() == 1 && AtEnd()) return std::optional<Batch>();
    dropped.push_back(std::move(ready_.front()));
    ready_.pop_front();
    changed_.NotifyAll();
    return std::move(dropped.back().result);
  }

  const std::shared_ptr<ReaderQueue>& queue() const override { return from_->queue(); }
  const Reader* source() const override { return from_.get(); }

 private:
  static constexpr size_t kBuffers = 2;
  static constexpr std::chrono::milliseconds kLook{5};
  struct Ready {
    size_t generation;
    Result<std::optional<Batch>> result;
  };

  size_t Generation() const { return queue()->generation(); }
  bool AtEnd() const HEDDLE_REQUIRES(mutex_) {
    return !ready_.empty() && ready_.back().result.ok() && !ready_.back().result->has_value();
  }
  // Moves the batches taken before the queue's last reset to `dropped`: the owners of their memory
  // may call back, so they are destroyed without the mutex.
  void DropOld(std::deque<Ready>* dropped) HEDDLE_REQUIRES(mutex_) {
    const size_t now = Generation();
    while (!ready_.empty() && ready_.front().generation != now) {
      dropped->push_back(std::move(ready_.front()));
      ready_.pop_front();
    }
  }

  void Work() {
    while (WaitForRoom()) {
      size_t generation = Generation();
      Result<std::optional<Batch>> next = Take(&generation);
      MutexLock lock(mutex_);
      if (stop_) return;
      ready_.push_back({generation, std::move(next)});
      changed_.NotifyAll();
    }
  }

  // False: the reader is being destroyed.
  bool WaitForRoom() {
    std::deque<Ready> dropped;  // destroyed after the mutex is released
    MutexLock lock(mutex_);
    for (;;) {
      if (stop_) return false;
      DropOld(&dropped);
      if (ready_.size() < kBuffers && !AtEnd()) return true;
      changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kLook);
    }
  }

  Result<std::optional<Batch>> Take(size_t* generation) {
    Result<std::optional<Batch>> next = std::optional<Batch>();
    // Takes no mutex: it is called often, and this reader's mutex may be held by a thread that
    // waits for it.
    const auto gone = [this] {
      return stop_ ? Status(StatusCode::kCancelled, "the reader is gone") : Status::Ok();
    };
    const Status status = Guard([&] {
      next = from_->Next(gone, generation);
      if (next.ok() && next->has_value())
        for (Tensor& t : **next) t = t.Contiguous();
      return Status::Ok();
    });
    if (!status.ok()) return status;
    return next;
  }

  const std::shared_ptr<Reader> from_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Ready> ready_ HEDDLE_GUARDED_BY(mutex_);
  std::atomic<bool> stop_{false};  // set under mutex_, so that no wait misses it
  std::thread thread_;             // declared last, since it uses the others
};

}  // namespace

std::shared_ptr<Reader> NewQueueReader(std::shared_ptr<ReaderQueue> queue,
                                       std::vector<ReaderSlot> slots) {
  return std::make_shared<QueueReader>(std::move(queue), std::move(slots));
}

std::shared_ptr<Reader> NewBufferedReader(std::shared_ptr<Reader> reader) {
  return std::make_shared<BufferedReader>(std::move(reader));
}

namespace {

// A copy, so that a concurrent run's value is not touched.
std::any ContentsOf(const Value* value) {
  if (value == nullptr || value->kind() != Value::Kind::kOther) return {};
  Value copy = *value;
  return copy.mutable_other();
}

}  // namespace

std::shared_ptr<ReaderQueue> QueueOf(const Value* value) {
  const std::any contents = ContentsOf(value);
  const auto* queue = std::any_cast<std::shared_ptr<ReaderQueue>>(&contents);
  return queue != nullptr ? *queue : nullptr;
}

std::shared_ptr<Reader> ReaderOf(const Value* value) {
  const std::any contents = ContentsOf(value);
  if (const auto* reader = std::any_cast<std::shared_ptr<Reader>>(&contents)) return *reader;
  std::shared_ptr<ReaderQueue> queue = QueueOf(value);
  return queue != nullptr ? NewQueueReader(std::move(queue), {}) : nullptr;
}

}  // namespace heddle

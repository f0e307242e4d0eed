// ReaderQueue: the data that a program reads for itself (operator `read`), a batch a run, pushed
// while runs go on.
//
//   auto queue = std::make_shared<heddle::ReaderQueue>(8);
//   scope->Set("queue", heddle::ReaderValue(queue));  // what create_py_reader or read names
//   std::thread feeder([&] { for (...) queue->Push({images, labels}); queue->Close(); });
//   for (;;) {
//     auto out = executor.Run(compiled, {});
//     if (!out.ok() && heddle::IsEndOfData(out.status())) break;
//     ...
//   }
//   queue->Reset();  // for the next epoch
//
// Errors: a run that finds the data at their end fails with a status of its own (IsEndOfData); the
// executor, the scope and the queue stay as they were. Threads: all methods from any thread; a run
// that waits for a batch ends at its deadline and when it is cancelled.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "heddle/status.h"
#include "heddle/value.h"

namespace heddle {

class ReaderQueue {
 public:
  using Batch = std::vector<Tensor>;  // one tensor for each variable that is read

  // `capacity` batches at most (at least 1).
  explicit ReaderQueue(size_t capacity);
  ~ReaderQueue();
  ReaderQueue(const ReaderQueue&) = delete;
  ReaderQueue& operator=(const ReaderQueue&) = delete;

  // Waits while the queue is full. False: it is closed, or was reset meanwhile, and the batch is
  // not in it. The tensors' memory is read by a later run and must not change.
  bool Push(Batch batch);
  // The same, for no longer than until `until`: nullopt when that came first.
  std::optional<bool> PushUntil(Batch batch, std::chrono::steady_clock::time_point until);
  // No further batch comes: when what is queued has been read, the data are at their end.
  void Close();
  // Drops all batches and begins anew, whether closed or not: those in the queue, those that a
  // double buffer has taken already, and those that wait in Push.
  void Reset();

  size_t size() const;
  size_t capacity() const;
  bool closed() const;

  // For readers: the next batch; nullopt: the data are at their end. `interrupted` is asked now and
  // then while the call waits; what it returns, unless ok, ends the call. `generation`, unless
  // null: how often the queue had been reset by then.
  Result<std::optional<Batch>> Pop(const std::function<Status()>& interrupted,
                                   size_t* generation = nullptr);
  // The number of calls of Reset.
  size_t generation() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// The value of a variable that programs read from.
Value ReaderValue(std::shared_ptr<ReaderQueue> queue);

// The run has failed for no other reason than that its reader was at the end of the data.
bool IsEndOfData(const Status& status);

}  // namespace heddle

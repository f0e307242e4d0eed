// ReaderQueue: the data that a program reads itself (operator `read`), one batch per run, pushed
// while runs go on.
//
//   auto queue = std::make_shared<heddle::ReaderQueue>(8);
//   scope->Set("queue", heddle::ReaderValue(queue));  // what create_py_reader or read names
//   std::thread feeder([&] {
//     for (...) queue->Push({images, labels});
//     queue->Close();
//   });
//   for (;;) {
//     auto out = executor.Run(compiled, {});
//     if (!out.ok() && heddle::IsEndOfData(out.status())) break;
//     ...
//   }
//   queue->Reset();  // for the next epoch
//
// Errors: a run that finds no more data fails with a status of its own (IsEndOfData); the executor,
// the scope and the queue are unchanged. Threads: all methods may be called from any thread; a run
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

  // `capacity`: the most batches in the queue (at least 1).
  explicit ReaderQueue(size_t capacity);
  ~ReaderQueue();
  ReaderQueue(const ReaderQueue&) = delete;
  ReaderQueue& operator=(const ReaderQueue&) = delete;

  // Adds a batch; waits while the queue is full. False: the queue is closed or was reset meanwhile,
  // and does not have the batch. A later run reads the tensors' memory, which must not change.
  bool Push(Batch batch);
  // The same, but waits at most until `until`; nullopt: the queue was still full.
  std::optional<bool> PushUntil(Batch batch, std::chrono::steady_clock::time_point until);
  // Ends the data: no batch follows those in the queue.
  void Close();
  // Drops all batches and opens the queue again: those in the queue, those that a double buffer has
  // taken, and those that wait in Push.
  void Reset();

  size_t size() const;
  size_t capacity() const;
  bool closed() const;

  // For readers: takes the next batch; nullopt: the end of the data. `interrupted` is called now
  // and then while the call waits, and ends it if it returns an error. `generation`, unless
  // nullptr: is set to the number of resets so far.
  Result<std::optional<Batch>> Pop(const std::function<Status()>& interrupted,
                                   size_t* generation = nullptr);
  // The number of calls of Reset.
  size_t generation() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// The value of a variable from which programs read.
Value ReaderValue(std::shared_ptr<ReaderQueue> queue);

// Whether a run failed only because its reader was at the end of the data.
bool IsEndOfData(const Status& status);

}  // namespace heddle

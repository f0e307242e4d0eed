// DispatchCrew: the threads of an executor that put work on the streams of its devices, one per
// device.
//
// Ownership: has the threads, from the first job on. Threads: all methods may be called from any
// thread. Memory ordering: what the caller did before Run happens before the job; all that the job
// did happens before Run returns (one mutex orders them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/function_ref.h"
#include "core/thread_annotations.h"

namespace heddle {

class DispatchCrew {
 public:
  explicit DispatchCrew(size_t size) : size_(size) {}
  ~DispatchCrew();
  DispatchCrew(const DispatchCrew&) = delete;
  DispatchCrew& operator=(const DispatchCrew&) = delete;

  size_t size() const { return size_; }
  // Calls job(0) … job(size() - 1), each on a thread of the crew, and `meanwhile` on this one;
  // returns true when all have returned. They must not throw. False, with nothing called: another
  // run uses the threads, or the system provides none.
  bool Run(FunctionRef<void(size_t)> job, FunctionRef<void()> meanwhile);

 private:
  void Work(size_t k);
  bool Claim(const FunctionRef<void(size_t)>* job);

  const size_t size_;
  Mutex mutex_;
  CondVar changed_;
  const FunctionRef<void(size_t)>* job_ HEDDLE_GUARDED_BY(mutex_) = nullptr;
  uint64_t jobs_ HEDDLE_GUARDED_BY(mutex_) = 0;  // number of jobs so far
  size_t busy_ HEDDLE_GUARDED_BY(mutex_) = 0;    // threads inside the latest job
  bool taken_ HEDDLE_GUARDED_BY(mutex_) = false, stop_ HEDDLE_GUARDED_BY(mutex_) = false;
  // Started by the caller that has the crew, joined by the destructor.
  std::vector<std::thread> threads_;
};

}  // namespace heddle

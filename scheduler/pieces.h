// How ParallelFor cuts a range [0, n) into pieces for several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

#include "core/function_ref.h"
#include "core/interrupts.h"
#include "core/thread_annotations.h"

namespace heddle {

// The cut of [0, n) into pieces of nearly equal length.
struct Partition {
  Partition(int64_t count, int64_t grain, int threads)
      : n(count),
        pieces(std::min<int64_t>(std::max<int64_t>(1, n / std::max<int64_t>(1, grain)), threads)) {}
  int64_t Begin(int64_t piece) const { return piece * n / pieces; }
  int64_t n, pieces;
};

// Calls fn over [begin, end) in steps, and looks for interrupts before each. A step is one item
// where `grain` is 1 (an item is worth a thread), and some times `grain` items otherwise. The steps
// depend on the range and the grain alone.
inline void RunInSteps(int64_t begin, int64_t end, int64_t grain, const Interrupts& look,
                       FunctionRef<void(int64_t, int64_t)> fn) {
  constexpr int64_t kSmallItems = 4;
  const int64_t step = grain > 1 ? std::min(kSmallItems * grain, end - begin) : 1;
  for (int64_t at = begin; at < end;) {
    look.LookOrLeave();
    const int64_t next = step < end - at ? at + step : end;
    fn(at, next);
    at = next;
  }
}

// Executes all of [0, n) on the calling thread.
inline void RunWhole(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) {
  if (const Interrupts* const look = Interrupts::Current(); look != nullptr)
    RunInSteps(0, n, grain, *look, fn);
  else
    fn(0, n);
}

// The pieces of one ParallelFor, executed by any number of threads. The owner calls Work() and,
// when no other thread is inside Work() any more, Rethrow().
class Pieces {
 public:
  Pieces(const Partition& cut, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn)
      : cut_(cut), grain_(grain), fn_(fn) {}
  // Executes pieces until all are taken. Does not throw.
  void Work() {
    const Interrupts::Scope scope(interrupts_);
    for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < cut_.pieces;) {
      try {
        if (interrupts_ == nullptr)
          fn_(cut_.Begin(i), cut_.Begin(i + 1));
        else
          RunInSteps(cut_.Begin(i), cut_.Begin(i + 1), grain_, *interrupts_, fn_);
      } catch (...) {
        MutexLock lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
  }
  // Throws the first exception that a piece threw, if one did.
  void Rethrow() const HEDDLE_NO_THREAD_SAFETY_ANALYSIS {  // nobody is inside Work()
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const Partition cut_;
  const int64_t grain_;
  Interrupts* const interrupts_ = Interrupts::Current();  // of the thread that began
  const FunctionRef<void(int64_t, int64_t)> fn_;
  std::atomic<int64_t> next_{0};
  Mutex mutex_;
  std::exception_ptr error_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle

// The partition of work on [0, n) among threads: ParallelFor's, whoever executes it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

#include "core/function_ref.h"
#include "core/thread_annotations.h"

namespace heddle {

// Pieces of [0, n).
struct Partition {
  Partition(int64_t count, int64_t grain, int threads)
      : n(count),
        pieces(std::min<int64_t>(std::max<int64_t>(1, n / std::max<int64_t>(1, grain)), threads)) {}
  int64_t Begin(int64_t piece) const { return piece * n / pieces; }
  int64_t n, pieces;
};

// The pieces of one ParallelFor, for any number of threads. An owner calls Work() and, when nobody
// is inside Work() any more, Rethrow().
class Pieces {
 public:
  Pieces(const Partition& cut, FunctionRef<void(int64_t, int64_t)> fn) : cut_(cut), fn_(fn) {}
  // Executes pieces until all are taken. Does not throw.
  void Work() {
    for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < cut_.pieces;) {
      try {
        fn_(cut_.Begin(i), cut_.Begin(i + 1));
      } catch (...) {
        MutexLock lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
  }
  // The first exception of a piece, if there was one.
  void Rethrow() const HEDDLE_NO_THREAD_SAFETY_ANALYSIS {  // nobody is inside Work()
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const Partition cut_;
  const FunctionRef<void(int64_t, int64_t)> fn_;
  std::atomic<int64_t> next_{0};
  Mutex mutex_;
  std::exception_ptr error_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle

// LibraryPlace: the threads that calls of the primitives library (oneDNN) may use.
//
// The library asks oneTBB how many threads a call may use, and oneTBB takes a millisecond to start.
// A run with one thread therefore names a place (Guard), and the wrapper of the library enters it
// for each call (Enter). Runs without such calls do not start oneTBB.
#pragma once

#include <utility>

#include "core/function_ref.h"

namespace heddle {

// Threads: Run may be called from several threads at once.
class LibraryPlace {
 public:
  virtual ~LibraryPlace() = default;
  // Calls fn, in which the library uses the threads of this place alone.
  virtual void Run(FunctionRef<void()> fn) = 0;

  // Within the guard's life the calling thread's calls of the library belong to `place`.
  class Guard {
   public:
    explicit Guard(LibraryPlace* place) : outer_(std::exchange(current_, place)) {}
    ~Guard() { current_ = outer_; }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    LibraryPlace* const outer_;
  };

  // Calls fn in the calling thread's place; at once where it has none or is there already.
  template <typename Fn>
  static void Enter(Fn&& fn) {
    LibraryPlace* const place = current_;
    if (place == nullptr) return fn();
    Guard inside(nullptr);
    place->Run(fn);
  }

 private:
  static inline thread_local LibraryPlace* current_ = nullptr;
};

}  // namespace heddle

// LibraryPlace: the threads that calls of the primitives library (oneDNN) may use.
//
// The library asks oneTBB how many threads a call may use, and oneTBB takes a millisecond to start.
// A run with one thread therefore only names a place (Guard), which the wrapper of the library
// enters for each call (Enter). Runs without such calls do not start oneTBB.
#pragma once

#include <utility>

#include "core/function_ref.h"

namespace heddle {

// Threads: Run may be called from several threads at once.
class LibraryPlace {
 public:
  virtual ~LibraryPlace() = default;
  // Calls fn; inside, the library uses only the threads of this place.
  virtual void Run(FunctionRef<void()> fn) = 0;

  // While the guard exists, the calling thread's calls of the library use `place`.
  class Guard {
   public:
    explicit Guard(LibraryPlace* place) : outer_(std::exchange(current_, place)) {}
    ~Guard() { current_ = outer_; }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    LibraryPlace* const outer_;
  };

  // Calls fn in the calling thread's place; directly if it has none or is inside it already.
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

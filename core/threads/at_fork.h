// What happens at fork(): a child process has the one thread that called it, and finds locks that
// other threads held and threads to wait for that are not there.
//
// Whoever has threads, or locks that a child needs (to drop its tensors, for one), has an AtFork as
// a member. The locks are taken before a fork and let go of behind it: nobody is in the middle of
// something then. Only locks that are held for moments, and under which nobody takes others.
#pragma once

#include <functional>
#include <new>

#include "core/thread_annotations.h"

namespace heddle {

class AtFork {
 public:
  // `in_child` is called in each child process before its locks are let go of: it forgets threads.
  // It must not destroy what belongs to callers, who may have locks of their own. None may throw.
  AtFork(std::function<void()> lock, std::function<void()> unlock,
         std::function<void()> in_child = nullptr);
  explicit AtFork(Mutex& mutex, std::function<void()> in_child = nullptr);
  ~AtFork();
  AtFork(const AtFork&) = delete;
  AtFork& operator=(const AtFork&) = delete;

 private:
  struct List;
  static List& All();
  const std::function<void()> lock_, unlock_, in_child_;
  AtFork* before_ = nullptr;  // in the list of all, guarded by its lock
  AtFork* behind_ = nullptr;
};

// For a child process: the object as it is when it is made. What it held is left behind: threads
// that are not there cannot be waited for.
template <typename T>
void LeaveBehind(T& thing) {
  new (&thing) T();
}

}  // namespace heddle

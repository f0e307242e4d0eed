// Keeps the library usable in the child of a fork(). The child has only the thread that forked: a
// lock that another thread held would stay held, and a thread to wait for would never come.
//
// Whoever has threads, or locks that a child needs (to drop its tensors, for one), has an AtFork as
// a member. The locks are taken before a fork and let go of behind it: nobody is in the middle of
// something then. Only locks that are held for moments, and under which nobody takes others. Nor
// may an AtFork be made or destroyed under such a lock.
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

// For a child process: makes the object anew without destroying the old one, whose threads do not
// exist here.
template <typename T>
void LeaveBehind(T& thing) {
  new (&thing) T();
}

}  // namespace heddle

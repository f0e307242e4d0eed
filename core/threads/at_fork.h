// AtFork: keeps the library usable in the child of a fork(). The child has only the thread that
// forked: a lock that another thread held would stay held, and a thread to wait for would never
// come.
//
// An object with threads, or with locks that a child needs (to destroy tensors, for one), has an
// AtFork as a member. The locks are taken before a fork and released after it, so that no thread is
// inside them then. This is only for locks that are held for moments and under which no other lock
// is taken. An AtFork must not be made or destroyed under such a lock either.
#pragma once

#include <functional>
#include <new>

#include "core/thread_annotations.h"

namespace heddle {

class AtFork {
 public:
  // `in_child` is called in each child process before the locks are released: it forgets threads.
  // It must not destroy what belongs to callers, who may have locks of their own. No function may
  // throw.
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

#include "core/threads/at_fork.h"

#include <pthread.h>

#include <utility>

namespace heddle {

// Its lock is held during a fork, so that the child finds the list consistent.
struct AtFork::List {
  Mutex mutex;
  AtFork* first = nullptr;

  void Before() HEDDLE_NO_THREAD_SAFETY_ANALYSIS {
    mutex.lock();
    for (const AtFork* at = first; at != nullptr; at = at->behind_)
      if (at->lock_) at->lock_();
  }
  void Behind(bool in_child) HEDDLE_NO_THREAD_SAFETY_ANALYSIS {
    for (const AtFork* at = first; at != nullptr; at = at->behind_) {
      if (in_child && at->in_child_) at->in_child_();
      if (at->unlock_) at->unlock_();
    }
    mutex.unlock();
  }
};

// One list per process, as forks concern the process. It outlives all its elements.
AtFork::List& AtFork::All() {
  static List* const all = [] {
    auto* const made = new List;
    ::pthread_atfork([] { All().Before(); }, [] { All().Behind(false); },
                     [] { All().Behind(true); });
    return made;
  }();
  return *all;
}

AtFork::AtFork(std::function<void()> lock, std::function<void()> unlock,
               std::function<void()> in_child)
    : lock_(std::move(lock)), unlock_(std::move(unlock)), in_child_(std::move(in_child)) {
  List& all = All();
  MutexLock held(all.mutex);
  behind_ = all.first;
  if (behind_ != nullptr) behind_->before_ = this;
  all.first = this;
}

AtFork::AtFork(Mutex& mutex, std::function<void()> in_child)
    : AtFork([&mutex]() HEDDLE_NO_THREAD_SAFETY_ANALYSIS { mutex.lock(); },
             [&mutex]() HEDDLE_NO_THREAD_SAFETY_ANALYSIS { mutex.unlock(); }, std::move(in_child)) {
}

AtFork::~AtFork() {
  List& all = All();
  MutexLock held(all.mutex);
  if (behind_ != nullptr) behind_->before_ = before_;
  (before_ != nullptr ? before_->behind_ : all.first) = behind_;
}

}  // namespace heddle

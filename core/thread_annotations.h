// Thread-safety annotations, and the mutex that they work with. Clang's analysis, run by
// scripts/check_thread_safety.py, proves that guarded fields are only accessed under their mutex.
// Under other compilers the annotations are empty.
//
// Mutex, MutexLock and CondVar are std::mutex, std::unique_lock and std::condition_variable with
// annotations, which those of libstdc++ lack; they cost nothing. A condition is awaited in a loop
//
//   while (!done_) changed_.Wait(mutex_);
//
// rather than with a predicate, since the analysis does not look into lambdas. A lambda that
// accesses guarded fields has HEDDLE_REQUIRES(mutex_) after its parameter list.
//
// Public headers, which include only the standard library, use std::mutex and are not checked.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define HEDDLE_THREAD_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define HEDDLE_THREAD_ATTRIBUTE(...)
#endif

// On a field: accessing it, or what it points to, requires the mutex.
#define HEDDLE_GUARDED_BY(mutex) HEDDLE_THREAD_ATTRIBUTE(guarded_by(mutex))
#define HEDDLE_PT_GUARDED_BY(mutex) HEDDLE_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
// On a function: the caller must hold the mutexes, must not hold them, or holds or has released
// them after the call.
#define HEDDLE_REQUIRES(...) HEDDLE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define HEDDLE_EXCLUDES(...) HEDDLE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define HEDDLE_ACQUIRE(...) HEDDLE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define HEDDLE_TRY_ACQUIRE(...) HEDDLE_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define HEDDLE_RELEASE(...) HEDDLE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define HEDDLE_RETURN_CAPABILITY(mutex) HEDDLE_THREAD_ATTRIBUTE(lock_returned(mutex))
#define HEDDLE_ASSERT_HELD(...) HEDDLE_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))
// On a class: it is a mutex, or holds one while it exists.
#define HEDDLE_CAPABILITY(kind) HEDDLE_THREAD_ATTRIBUTE(capability(kind))
#define HEDDLE_SCOPED_CAPABILITY HEDDLE_THREAD_ATTRIBUTE(scoped_lockable)
// On a function that follows the rules in a way the analysis cannot check; a comment says how.
#define HEDDLE_NO_THREAD_SAFETY_ANALYSIS HEDDLE_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace heddle {

// A std::mutex with annotations.
class HEDDLE_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() HEDDLE_ACQUIRE() { mutex_.lock(); }
  bool try_lock() HEDDLE_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() HEDDLE_RELEASE() { mutex_.unlock(); }
  // Tells the analysis that this mutex is held under another name. Does nothing.
  void AssertHeld() const HEDDLE_ASSERT_HELD(this) {}
  // For ways of waiting that std::mutex has and this class lacks.
  std::mutex& plain() { return mutex_; }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex while it exists, except between Unlock and Lock.
class HEDDLE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HEDDLE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() HEDDLE_RELEASE() {
    if (held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() HEDDLE_RELEASE() {
    mutex_.unlock();
    held_ = false;
  }
  void Lock() HEDDLE_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// Releases a held mutex while it exists.
class HEDDLE_SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) HEDDLE_RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  // Clang's annotation for the end of a scope, even if that takes the mutex again.
  ~MutexUnlock() HEDDLE_RELEASE() { mutex_.lock(); }
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable. Waiting releases the mutex meanwhile and may end without a notification.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void Wait(Mutex& mutex) HEDDLE_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();  // the caller holds it again
  }
  // False: the time has passed.
  template <typename Clock, typename Duration>
  bool WaitUntil(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& time)
      HEDDLE_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool notified = changed_.wait_until(lock, time) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace heddle

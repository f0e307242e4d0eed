// Locks that somebody may hold for long: a run that writes its scope, a plan that is being made.
#pragma once

#include <pthread.h>
#include <time.h>

#include <mutex>

#include "core/interrupts.h"
#include "core/thread_annotations.h"

// The thread sanitizer does not know pthread_mutex_clocklock.
#if defined(__SANITIZE_THREAD__)
#define HEDDLE_HAS_CLOCKLOCK 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEDDLE_HAS_CLOCKLOCK 0
#endif
#endif
#ifndef HEDDLE_HAS_CLOCKLOCK
#define HEDDLE_HAS_CLOCKLOCK 1
#endif

namespace heddle {

// Takes the mutex; looks for interrupts while somebody else has it, and leaves by an Interrupted
// when the thread's work is to end.
inline void LockOrLeave(std::mutex& mutex) {
  Interrupts* const mine = Interrupts::Current();
  if (mine == nullptr) return mutex.lock();
  if (mutex.try_lock()) return;
  constexpr long kBetweenLooksNs = 5000000;
  int failed = 0;
  do {
    mine->LookOrLeave();
    timespec until{};
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += kBetweenLooksNs;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
#if HEDDLE_HAS_CLOCKLOCK
    failed = pthread_mutex_clocklock(mutex.native_handle(), CLOCK_MONOTONIC, &until);
#else
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    failed = mutex.try_lock() ? 0 : 1;
#endif
  } while (failed != 0);
}

// The scope's write_mutex, and others that no annotation knows.
inline std::unique_lock<std::mutex> HoldOrLeave(std::mutex& mutex) {
  LockOrLeave(mutex);
  return std::unique_lock(mutex, std::adopt_lock);
}

// A MutexLock that leaves by an Interrupted.
class HEDDLE_SCOPED_CAPABILITY InterruptibleLock {
 public:
  explicit InterruptibleLock(Mutex& mutex) HEDDLE_ACQUIRE(mutex) HEDDLE_NO_THREAD_SAFETY_ANALYSIS
      : mutex_(mutex) {
    LockOrLeave(mutex.plain());
  }
  ~InterruptibleLock() HEDDLE_RELEASE() { mutex_.unlock(); }
  InterruptibleLock(const InterruptibleLock&) = delete;
  InterruptibleLock& operator=(const InterruptibleLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace heddle

// Locks that may be held for long, by a run that writes its scope or while a plan is made.
#pragma once

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/interrupts.h"
#include "core/thread_annotations.h"

// The thread sanitizer does not support pthread_mutex_clocklock.
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

// The mutexes that the calling thread has taken with the functions of this file. Their holders look
// for interrupts, and a call of the host that is made there must not wait for one of them.
class HeldMutexes {
 public:
  static void Add(const std::mutex& mutex) {
    if (count_ < kMost) held_[count_] = &mutex;
    ++count_;
  }
  // Mutexes may be removed in any order.
  static void Remove(const std::mutex& mutex) {
    const int known = std::min(count_--, kMost);
    const auto at = std::find(held_, held_ + known, &mutex);
    if (at != held_ + known) std::copy(at + 1, held_ + known, at);
  }
  static bool Has(const std::mutex& mutex) {
    const int known = std::min(count_, kMost);
    return std::find(held_, held_ + known, &mutex) != held_ + known;
  }

 private:
  static constexpr int kMost = 32;  // no thread holds more
  static inline thread_local int count_ = 0;
  static inline thread_local const std::mutex* held_[kMost] = {};
};

// Takes the mutex and looks for interrupts while it waits. Throws Interrupted if the thread's work
// is to end, or if it would wait for itself.
inline void LockOrLeave(std::mutex& mutex) {
  if (HostLine::inside() && HeldMutexes::Has(mutex)) [[unlikely]]
    throw Interrupted{Status(StatusCode::kInvalidArgument,
                             "a call that the host makes during a run, or other work, cannot use "
                             "what that work holds: the scope that it writes, the plan it makes")};
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

// Holds a mutex until it is destroyed: the scope's write_mutex, and others without annotations.
class HeldMutex {
 public:
  HeldMutex() = default;
  explicit HeldMutex(std::mutex& mutex) {
    LockOrLeave(mutex);
    HeldMutexes::Add(mutex);
    mutex_ = &mutex;
  }
  HeldMutex(HeldMutex&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
  HeldMutex& operator=(HeldMutex&& other) noexcept {
    std::swap(mutex_, other.mutex_);
    return *this;
  }
  ~HeldMutex() {
    if (mutex_ == nullptr) return;
    HeldMutexes::Remove(*mutex_);
    mutex_->unlock();
  }
  bool owns_lock() const { return mutex_ != nullptr; }

 private:
  std::mutex* mutex_ = nullptr;
};

inline HeldMutex HoldOrLeave(std::mutex& mutex) { return HeldMutex(mutex); }

// A MutexLock whose constructor may throw Interrupted.
class HEDDLE_SCOPED_CAPABILITY InterruptibleLock {
 public:
  explicit InterruptibleLock(Mutex& mutex) HEDDLE_ACQUIRE(mutex) HEDDLE_NO_THREAD_SAFETY_ANALYSIS
      : mutex_(mutex) {
    LockOrLeave(mutex.plain());
    HeldMutexes::Add(mutex.plain());
  }
  ~InterruptibleLock() HEDDLE_RELEASE() {
    HeldMutexes::Remove(mutex_.plain());
    mutex_.unlock();
  }
  InterruptibleLock(const InterruptibleLock&) = delete;
  InterruptibleLock& operator=(const InterruptibleLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace heddle

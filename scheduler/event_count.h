// EventCount: sleeping until a condition made of atomics may have become true.
//
//   waiter                                   notifier
//     while (!Condition()) {                   make Condition() true   (a seq_cst store)
//       auto key = events.PrepareWait();       events.Notify();
//       if (Condition()) {                                (Condition() uses seq_cst loads here)
//         events.CancelWait();
//         break;
//       }
//       events.Wait(key);
//     }
//
// Notify costs one load while nobody waits.
//
// Threads: everything may be called from any thread. Memory ordering: the store that makes the
// condition true, Notify's look at the number of waiters, PrepareWait's announcement and the second
// look at the condition are all seq_cst, so in their single order either the notifier sees the
// waiter or the waiter sees the condition (Dekker's argument): no wake-up is lost. What was written
// before the store is visible to whoever saw the condition, by that store and load, not by the
// EventCount.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/interrupts.h"
#include "scheduler/futex.h"

namespace heddle {

class EventCount {
 public:
  EventCount() = default;
  EventCount(const EventCount&) = delete;
  EventCount& operator=(const EventCount&) = delete;

  uint32_t PrepareWait() {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    return epoch_.load(std::memory_order_seq_cst);
  }
  void CancelWait() { waiters_.fetch_sub(1, std::memory_order_relaxed); }
  // Sleeps until a Notify after PrepareWait; may also wake without one. A thread that works for an
  // interruptible run wakes from time to time to look for interrupts, so that a call of the host is
  // made on the thread that it is meant for; ending the run is left to the threads that execute.
  void Wait(uint32_t key) {
    const Interrupts* const mine = Interrupts::Current();
    while (epoch_.load(std::memory_order_seq_cst) == key) {
      if (mine == nullptr)
        SleepAt(epoch_, key);
      else
        LookAndSleep(*mine, key);
    }
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }

  void Notify() {
    if (waiters_.load(std::memory_order_seq_cst) != 0) Wake();
  }
  bool has_waiters() const { return waiters_.load(std::memory_order_relaxed) != 0; }

 private:
  void Wake() {
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    WakeAllAt(epoch_);
  }
  void LookAndSleep(const Interrupts& mine, uint32_t key) {
    constexpr auto kBetweenLooks = std::chrono::milliseconds(5);
    (void)mine.Look();
    SleepAt(epoch_, key, std::chrono::steady_clock::now() + kBetweenLooks);
  }
  std::atomic<uint32_t> waiters_{0};
  std::atomic<uint32_t> epoch_{0};
};

}  // namespace heddle

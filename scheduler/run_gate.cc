#include "scheduler/run_gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace heddle {
namespace {

// Sleeps while `word` is 0, until it is woken or `until` has come; may return earlier. A condition
// variable wakes a thread into a lock that its waker still holds: with eight callers of a run of 30 us
// that doubles the context switches.
void Sleep(std::atomic<uint32_t>& word, const std::optional<RunGate::Time>& until) {
  timespec deadline{};
  if (until) {
    // The steady clock is the one that the system call measures absolute times by.
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(until->time_since_epoch());
    deadline.tv_sec = static_cast<time_t>(ns.count() / 1000000000);
    deadline.tv_nsec = static_cast<long>(ns.count() % 1000000000);
  }
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, until ? &deadline : nullptr, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

// The word may be gone by now: then nobody sleeps at that address, or somebody who looks again.
void Wake(std::atomic<uint32_t>* word) { ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1); }

}  // namespace

int RunGate::Enter(const std::optional<Time>& until) {
  if (places_ == 0) return 1;
  Waiter me;
  {
    std::lock_guard lock(mutex_);
    if (first_ == nullptr && inside_ == 0) return inside_ = threads_;
    if (first_ == nullptr && inside_ < places_) {
      ++inside_;
      return 1;
    }
    (first_ == nullptr ? first_ : last_->next) = &me;
    last_ = &me;
  }
  while (me.admitted.load(std::memory_order_acquire) == 0) {
    // Who is not in the list any more has been admitted and is about to hear of it.
    if (until && std::chrono::steady_clock::now() >= *until && Remove(&me)) return 0;
    Sleep(me.admitted, until);
  }
  return 1;
}

bool RunGate::Remove(Waiter* waiter) {
  std::lock_guard lock(mutex_);
  Waiter* before = nullptr;
  for (Waiter* w = first_; w != nullptr; before = w, w = w->next) {
    if (w != waiter) continue;
    (before == nullptr ? first_ : before->next) = w->next;
    if (last_ == w) last_ = before;
    return true;
  }
  return false;
}

void RunGate::Leave(int threads) {
  if (places_ == 0) return;
  Waiter* admitted = nullptr;
  int count = 0;
  {
    std::lock_guard lock(mutex_);
    inside_ -= threads;
    admitted = first_;
    for (; first_ != nullptr && inside_ < places_; ++inside_, ++count) first_ = first_->next;
    if (first_ == nullptr) last_ = nullptr;
  }
  for (; count > 0; --count) {
    Waiter* const next = admitted->next;
    admitted->admitted.store(1, std::memory_order_release);
    Wake(&admitted->admitted);
    admitted = next;
  }
}

}  // namespace heddle

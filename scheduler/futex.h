// Sleeping until a word changes, or until a time: what std::atomic waits with, but for the time.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <optional>

namespace heddle {

// Sleeps while `word` is `value`, until it is woken or `until` has come; may return earlier. The
// address must not be one that std::atomic's wait sleeps at.
inline void SleepAt(const std::atomic<uint32_t>& word, uint32_t value,
                    const std::optional<std::chrono::steady_clock::time_point>& until = {}) {
  timespec deadline{};
  if (until) {
    // The steady clock is the one that the system call measures absolute times by.
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(until->time_since_epoch());
    deadline.tv_sec = static_cast<time_t>(ns.count() / 1000000000);
    deadline.tv_nsec = static_cast<long>(ns.count() % 1000000000);
  }
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, value, until ? &deadline : nullptr,
            nullptr, FUTEX_BITSET_MATCH_ANY);
}

inline void WakeOneAt(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
}
inline void WakeAllAt(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX);
}

}  // namespace heddle

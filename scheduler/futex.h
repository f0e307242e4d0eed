// Sleeping until a word changes or a deadline passes: std::atomic's wait with a deadline.
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

// Sleeps while `word` equals `value`, until WakeAt is called on it or `until` has come; may return
// earlier. No thread may use std::atomic's own wait on the same word.
inline void SleepAt(const std::atomic<uint32_t>& word, uint32_t value,
                    const std::optional<std::chrono::steady_clock::time_point>& until = {}) {
  timespec deadline{};
  if (until) {
    // The system call measures absolute times by CLOCK_MONOTONIC, which is std's steady clock.
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

// Team: jobs for threads that are lent. Somebody else's pool sends a thread here when it is called
// for; it stays for the next jobs, which then begin much sooner than that pool could begin them,
// and goes back when none comes or when the pool needs it.
//
// Threads: Run, Dismiss and Serve from any. Memory ordering: scheduler/README.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "core/threads/at_fork.h"
#include "scheduler/job_slot.h"

namespace heddle {

class Team {
 public:
  // `call`: has one more thread call Serve(), soon or never; from the thread that is in Run, must
  // not throw. `helpers`: most threads that are called for at a time.
  Team(int helpers, std::function<void()> call) : helpers_(helpers), call_(std::move(call)) {}
  // Nobody is in Serve() any more, and nobody who was called will call it.
  ~Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Calls job(0) here and job(1) … job(participants - 1), in part or none of them, on threads that
  // serve; returns when all have returned. `job` must not throw and must get by with job(0) alone.
  // False, and nothing is called: another job is under way.
  bool Run(FunctionRef<void(int)> job, int participants);
  // Who waits for a job goes back at once, and who comes before the next Run.
  void Dismiss() {
    if (!dismissed_.load(std::memory_order_relaxed))
      dismissed_.store(true, std::memory_order_relaxed);
  }
  // For a thread that was called, once for each call: serves as long as it is needed.
  void Serve();
  // Instead of Serve().
  void Decline() { called_.fetch_sub(1, std::memory_order_relaxed); }
  // In a child process, where nobody who was called comes, and nobody serves.
  void ForgetThreads() {
    LeaveBehind(slot_);
    called_.store(0);
    busy_.store(false);
  }

  // The time that a thread without a job stays.
  static constexpr uint64_t kStayNs = 20000;

 private:
  const int helpers_;
  const std::function<void()> call_;
  JobSlot slot_;
  alignas(128) std::atomic<bool> dismissed_{false};
  std::atomic<int> called_{0};  // for, or here
  alignas(128) std::atomic<bool> busy_{false};
};

}  // namespace heddle

// Team: executes jobs with threads borrowed from another pool. That pool sends a thread here when
// it is called; the thread stays for the next jobs, which then begin much sooner than the pool
// could begin them, and goes back when no job comes or when the pool needs it.
//
// Threads: Run, Dismiss and Serve may be called from any thread. Memory ordering:
// scheduler/README.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "core/threads/at_fork.h"
#include "scheduler/job_slot.h"

namespace heddle {

class Team {
 public:
  // `call` asks the other pool for one more thread that calls Serve() or Decline(), soon or never;
  // it is called on the thread that is in Run and must not throw. `helpers`: the most threads that
  // are called for at a time.
  Team(int helpers, std::function<void()> call) : helpers_(helpers), call_(std::move(call)) {}
  // No thread may be in Serve() any more, and none that was called may still call it.
  ~Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Calls job(0) on this thread, and job(1) … job(participants - 1), or only some of them, on
  // threads that serve; returns true when all have returned. `job` must not throw and must complete
  // with job(0) alone. False: another job is under way, and nothing was called.
  bool Run(FunctionRef<void(int)> job, int participants);
  // Sends back the threads that wait for a job, and those that arrive before the next Run.
  void Dismiss() {
    if (!dismissed_.load(std::memory_order_relaxed))
      dismissed_.store(true, std::memory_order_relaxed);
  }
  // To be called by a thread that was called for, once per call: executes jobs, and returns when
  // none has come for kStayNs or Dismiss was called.
  void Serve();
  // To be called instead of Serve() by a thread that cannot stay.
  void Decline() { called_.fetch_sub(1, std::memory_order_relaxed); }
  // For a child process, which has none of the threads that were called for or serve.
  void ForgetThreads() {
    LeaveBehind(slot_);
    called_.store(0);
    busy_.store(false);
  }

  // How long a thread without a job stays, in ns.
  static constexpr uint64_t kStayNs = 20000;

 private:
  const int helpers_;
  const std::function<void()> call_;
  JobSlot slot_;
  alignas(128) std::atomic<bool> dismissed_{false};
  std::atomic<int> called_{0};  // threads called for or serving
  alignas(128) std::atomic<bool> busy_{false};
};

}  // namespace heddle

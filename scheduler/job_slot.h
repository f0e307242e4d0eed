// JobSlot: a job that threads who look at the slot may help with, as long as its owner wants them
// to.
//
//   owner                               helper
//     Open(job, helpers)                  if (offers()) {
//     job(0)                                if (int ticket = Enter()) Call(ticket);
//     Withdraw(); AwaitHelpers();           Leave();
//                                         }
//
// Threads: one owner at a time; any number of helpers at any time, whoever owns the slot. What a
// helper did inside the job happens before AwaitHelpers returns. Memory ordering:
// scheduler/README.md.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/function_ref.h"
#include "scheduler/event_count.h"
#include "scheduler/spin.h"

namespace heddle {

class alignas(128) JobSlot {
 public:
  using Job = FunctionRef<void(int)>;  // gets the participant: 0 is the owner, tickets count from 1

  // Offers the job to at most `helpers` threads. `job` must live until AwaitHelpers has returned.
  void Open(const Job& job, int helpers) {
    job_ = &job;
    tickets_.store(helpers, std::memory_order_seq_cst);
  }
  // Takes back the tickets that are left; true when there were some.
  bool Withdraw() { return tickets_.exchange(0, std::memory_order_seq_cst) > 0; }
  // After Withdraw: returns when no helper is inside any more.
  void AwaitHelpers() {
    Spin spin(kSpinNs);
    while (visitors_.load(std::memory_order_seq_cst) != 0) {
      if (spin.Once()) continue;
      const uint32_t key = left_.PrepareWait();
      if (visitors_.load(std::memory_order_seq_cst) == 0)
        left_.CancelWait();
      else
        left_.Wait(key);
    }
  }

  bool offers() const { return tickets_.load(std::memory_order_relaxed) > 0; }
  // Takes a ticket: its number, counted down to 1, or 0 when none is left. The caller must call
  // Leave() in either case.
  int Enter() {
    // A helper announces itself before it takes a ticket: the owner withdraws the tickets first and
    // then waits for all who announced themselves, so none is missed.
    visitors_.fetch_add(1, std::memory_order_seq_cst);
    int tickets = tickets_.load(std::memory_order_seq_cst);
    while (tickets > 0 &&
           !tickets_.compare_exchange_weak(tickets, tickets - 1, std::memory_order_seq_cst)) {
    }
    return tickets;
  }
  void Call(int ticket) const { (*job_)(ticket); }
  // Release: what was done inside happens before the owner goes on.
  void Leave() {
    if (visitors_.fetch_sub(1, std::memory_order_seq_cst) == 1) left_.Notify();
  }

 private:
  static constexpr uint64_t kSpinNs = 20000;  // before the owner sleeps
  std::atomic<int> tickets_{0};
  std::atomic<int> visitors_{0};  // threads that look at the slot or are inside the job
  const Job* job_ = nullptr;      // written before tickets, read with a ticket
  EventCount left_;
};

}  // namespace heddle

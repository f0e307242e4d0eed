// The host threads of an executor. They help whoever has a parallel job: a run whose lanes or tasks
// are to be shared, or a kernel that cut its work into pieces.
//
// Threads: all methods may be called from any thread. A job is a function that several threads call
// at the same time, each with a participant index of its own. Workers without a job spin for some
// microseconds, then sleep. The protocol and its memory ordering: scheduler/README.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/function_ref.h"
#include "core/services.h"
#include "core/threads/at_fork.h"
#include "scheduler/event_count.h"
#include "scheduler/job_slot.h"
#include "scheduler/pieces.h"

namespace heddle {

class HostPool final : public IntraOp {
 public:
  // Starts `threads` - 1 workers: the calling thread counts as one. The first worker, if there is
  // one, calls `first` before it serves; `first` must not throw and must not use the pool.
  explicit HostPool(int threads, void (*first)() = nullptr);
  ~HostPool() override;
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  int threads() const override { return threads_; }
  void ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) override;

  // Calls job(0) on this thread, and job(1) … job(participants - 1) on workers that are free, at
  // most threads() in all. Returns when job(0) has returned and no worker is inside the job any
  // more. Everything a worker did inside happens before the return. `job` must not throw, must
  // return when its work is done, and must get by with job(0) alone.
  void Run(FunctionRef<void(int)> job, int participants);
  void Run(FunctionRef<void(int)> job) { Run(job, threads_); }

  // The time in ns until one thread sees what another one has written: half a round trip between
  // the caller and a worker. Measured once, on first use; that takes some tens of microseconds, up
  // to 20 ms while the workers are not running yet.
  double HandOverNs();

  // How long a worker without a job spins before it sleeps, in ns.
  static constexpr uint64_t kSpinNs = 20000;

 private:
  static constexpr int kSlots = 16;  // jobs that can be open at a time; further ones get no help
  // The record of an open job. Slots belong to the pool, so that a worker may read one at any time.
  struct Slot : JobSlot {
    std::atomic<bool> used{false};
  };

  void Work();
  bool Serve();
  bool Join(Slot& slot);
  Slot* Claim();
  void Close(Slot& slot);

  const int threads_;
  std::array<Slot, kSlots> slots_;
  alignas(128) std::atomic<int> open_{0};  // slots with tickets
  std::atomic<bool> stop_{false};
  EventCount jobs_;
  std::once_flag measured_;
  double hand_over_ns_ = 0;
  std::vector<std::thread> workers_;
  // A child process has no workers.
  const AtFork at_fork_{nullptr, nullptr, [this] {
                          LeaveBehind(workers_);
                          LeaveBehind(slots_);
                          open_.store(0);
                        }};
};

// Runs all pieces on the calling thread, with the partition that `threads` threads would have, so
// that results are the same.
class InlineIntraOp final : public IntraOp {
 public:
  explicit InlineIntraOp(int threads) : threads_(threads) {}
  int threads() const override { return threads_; }
  void ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) override;

 private:
  int threads_;
};

// The number of processors that the control group grants (version 2 or 1); 0 = no limit.
double ProcessorQuota();
// The number of processors that this process may use: those of its affinity mask, at most the
// quota.
int AvailableThreads();

}  // namespace heddle

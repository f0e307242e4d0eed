// The host threads of an executor. They help whoever has a parallel job: a run whose tasks are
// ready, or a kernel that cut its work into pieces.
//
// Threads: all methods may be called from any thread. Workers sleep while there is no job. A job is a
// function that several threads call at the same time, each with a participant index of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/function_ref.h"
#include "core/services.h"

namespace heddle {

class HostPool final : public IntraOp {
 public:
  // `threads` counts the calling thread: threads - 1 workers are started.
  explicit HostPool(int threads);
  ~HostPool() override;
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  int threads() const override { return threads_; }
  void ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) override;

  // Calls job(0) on this thread, and job(1) … job(threads()-1) on workers that are free. Returns
  // when job(0) has returned and no worker is inside the job any more. Everything a worker did
  // inside happens before the return. `job` must not throw, must return when its work is done, and
  // must get by with job(0) alone.
  void Run(FunctionRef<void(int)> job);

 private:
  struct Job;
  void Work();

  const int threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Job*> jobs_;  // that still want participants
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

// Pieces of [0, n): how ParallelFor cuts its work, whoever executes it.
struct Partition {
  Partition(int64_t n, int64_t grain, int threads);
  int64_t Begin(int64_t piece) const { return piece * n / pieces; }
  int64_t n, pieces;
};

// Runs all pieces on the calling thread: same cut, same results.
class InlineIntraOp final : public IntraOp {
 public:
  explicit InlineIntraOp(int threads) : threads_(threads) {}
  int threads() const override { return threads_; }
  void ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) override;

 private:
  int threads_;
};

// Processors this process may use: the affinity mask, cut by the cgroup's CPU quota.
int AvailableThreads();

}  // namespace heddle

#include "scheduler/host_pool.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <string>

namespace heddle {

struct HostPool::Job {
  FunctionRef<void(int)> run;
  int next_participant = 1;  // guarded by the pool's mutex
  int inside = 0;            // workers inside, guarded by the pool's mutex
  std::condition_variable left;
};

HostPool::HostPool(int threads) : threads_(std::max(1, threads)) {
  for (int i = 1; i < threads_; ++i) workers_.emplace_back([this] { Work(); });
}

HostPool::~HostPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : workers_) t.join();
}

void HostPool::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    Job* job = jobs_.front();
    const int participant = job->next_participant++;
    if (job->next_participant >= threads_) jobs_.erase(jobs_.begin());
    ++job->inside;
    lock.unlock();
    job->run(participant);
    lock.lock();
    if (--job->inside == 0) job->left.notify_all();
  }
}

void HostPool::Run(FunctionRef<void(int)> run) {
  if (threads_ == 1) return run(0);
  Job job{.run = run, .left = {}};
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(&job);
  }
  wake_.notify_all();
  run(0);
  std::unique_lock lock(mutex_);
  std::erase(jobs_, &job);
  job.left.wait(lock, [&] { return job.inside == 0; });
}

Partition::Partition(int64_t count, int64_t grain, int threads) : n(count) {
  const int64_t most = std::max<int64_t>(1, n / std::max<int64_t>(1, grain));
  pieces = std::min<int64_t>(most, threads);
}

void InlineIntraOp::ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) {
  const Partition cut(n, grain, threads_);
  for (int64_t i = 0; i < cut.pieces; ++i) fn(cut.Begin(i), cut.Begin(i + 1));
}

void HostPool::ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) {
  const Partition cut(n, grain, threads_);
  if (cut.pieces <= 1) return fn(0, n);
  std::atomic<int64_t> next{0};
  std::mutex error_mutex;
  std::exception_ptr error;
  Run([&](int) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < cut.pieces;) {
      try {
        fn(cut.Begin(i), cut.Begin(i + 1));
      } catch (...) {
        std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
      }
    }
  });
  if (error) std::rethrow_exception(error);
}

int AvailableThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int n = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof(set), &set) == 0) n = CPU_COUNT(&set);
  std::ifstream cgroup("/sys/fs/cgroup/cpu.max");  // "max 100000" or "150000 100000"
  std::string quota;
  double period = 0;
  if (cgroup >> quota >> period && quota != "max" && period > 0)
    n = std::min(n, static_cast<int>(std::stod(quota) / period + 0.999));
  return std::max(1, n);
}

}  // namespace heddle

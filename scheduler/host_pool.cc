#include "scheduler/host_pool.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <limits>
#include <string>

#include "scheduler/spin.h"

namespace heddle {

HostPool::HostPool(int threads, void (*first)()) : threads_(std::max(1, threads)) {
  workers_.reserve(static_cast<size_t>(threads_ - 1));
  try {
    for (int i = 1; i < threads_; ++i) {
      workers_.emplace_back([this, first, i] {
        if (i == 1 && first != nullptr) first();
        Work();
      });
    }
  } catch (...) {  // std::system_error: the system has no more threads
    stop_.store(true, std::memory_order_seq_cst);
    jobs_.Notify();
    for (std::thread& t : workers_) t.join();
    throw;
  }
}

HostPool::~HostPool() {
  stop_.store(true, std::memory_order_seq_cst);
  jobs_.Notify();
  for (std::thread& t : workers_) t.join();
}

void HostPool::Work() {
  for (;;) {
    Spin spin(kSpinNs);
    do {
      if (stop_.load(std::memory_order_relaxed)) return;
      if (open_.load(std::memory_order_relaxed) > 0 && Serve()) spin = Spin(kSpinNs);
    } while (spin.Once());
    const uint32_t key = jobs_.PrepareWait();
    if (stop_.load(std::memory_order_seq_cst) || open_.load(std::memory_order_seq_cst) > 0)
      jobs_.CancelWait();
    else
      jobs_.Wait(key);
  }
}

// Helps with the first job that has a ticket left; false when there is none.
bool HostPool::Serve() {
  for (Slot& slot : slots_)
    if (slot.offers() && Join(slot)) return true;
  return false;
}

bool HostPool::Join(Slot& slot) {
  const int ticket = slot.Enter();
  if (ticket == 1) open_.fetch_sub(1, std::memory_order_relaxed);
  if (ticket > 0) slot.Call(ticket);
  slot.Leave();
  return ticket > 0;
}

HostPool::Slot* HostPool::Claim() {
  for (Slot& slot : slots_) {
    bool used = false;
    if (!slot.used.load(std::memory_order_relaxed) &&
        slot.used.compare_exchange_strong(used, true, std::memory_order_acquire))
      return &slot;
  }
  return nullptr;
}

// Lets no further worker join, and returns when the last one inside has left.
void HostPool::Close(Slot& slot) {
  if (slot.Withdraw()) open_.fetch_sub(1, std::memory_order_relaxed);
  slot.AwaitHelpers();
  slot.used.store(false, std::memory_order_release);
}

void HostPool::Run(FunctionRef<void(int)> job, int participants) {
  const int helpers = std::min(participants, threads_) - 1;
  Slot* slot = helpers > 0 ? Claim() : nullptr;
  if (slot == nullptr) return job(0);
  slot->Open(job, helpers);
  open_.fetch_add(1, std::memory_order_seq_cst);
  jobs_.Notify();
  job(0);
  Close(*slot);
}

namespace {

// Measures how long a store by one thread takes to be seen by another: two threads send a counter
// to and fro, and the fastest batch of round trips counts.
class PingPong {
 public:
  // Both participants call this. Participant 0 gets the time of one way in ns, or infinity when the
  // other one did not answer within `patience_ns`.
  double Play(int participant, uint64_t patience_ns) {
    if (participant == 0) return Serve(patience_ns);
    if (participant == 1) Return();
    return 0;
  }

 private:
  static constexpr uint32_t kRounds = 400, kBatch = 20;
  struct alignas(128) Word {
    std::atomic<uint32_t> value{0};
  };
  double Serve(uint64_t patience_ns) {
    const uint64_t begin = NowNs();
    uint64_t start = begin, best = ~uint64_t{0};
    for (uint32_t k = 1; k <= kRounds; ++k) {
      ping_.value.store(k, std::memory_order_release);
      for (uint32_t look = 1; pong_.value.load(std::memory_order_acquire) != k; ++look) {
        if (look % 256 != 0 || NowNs() - begin < patience_ns) continue;
        over_.store(true, std::memory_order_relaxed);
        return std::numeric_limits<double>::infinity();
      }
      if (k % kBatch != 0) continue;
      const uint64_t now = NowNs();
      best = std::min(best, now - start);
      start = now;
    }
    return static_cast<double>(best) / (2 * kBatch);
  }
  void Return() {
    for (uint32_t k = 1; k <= kRounds && !over_.load(std::memory_order_relaxed);)
      if (ping_.value.load(std::memory_order_acquire) == k)
        pong_.value.store(k++, std::memory_order_release);
  }
  Word ping_, pong_;
  std::atomic<bool> over_{false};
};

}  // namespace

double HostPool::HandOverNs() {
  std::call_once(measured_, [this] {
    constexpr double kUnknownNs = 150, kPlausibleNs = 1000;
    constexpr uint64_t kPatienceNs = 2000000;
    constexpr int kTries = 10;
    hand_over_ns_ = kUnknownNs;
    if (threads_ == 1) return;
    // The system may have put a worker that has just started on the caller's processor; it moves
    // one of the two once both stay busy. So an implausibly long time is measured again.
    for (int k = 0; k < kTries; ++k) {
      PingPong game;
      double ns = 0;
      Run([&](int participant) {
        const double mine = game.Play(participant, kPatienceNs);
        if (participant == 0) ns = mine;
      });
      if (ns > kPlausibleNs) continue;
      hand_over_ns_ = ns;
      break;
    }
  });
  return hand_over_ns_;
}

void InlineIntraOp::ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) {
  const Partition cut(n, grain, threads_);
  Interrupts* const look = Interrupts::Current();
  for (int64_t i = 0; i < cut.pieces; ++i) {
    if (look == nullptr)
      fn(cut.Begin(i), cut.Begin(i + 1));
    else
      RunInSteps(cut.Begin(i), cut.Begin(i + 1), grain, *look, fn);
  }
}

void HostPool::ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) {
  const Partition cut(n, grain, threads_);
  if (cut.pieces <= 1) return RunWhole(n, grain, fn);
  Pieces pieces(cut, grain, fn);
  Run([&](int) { pieces.Work(); });
  pieces.Rethrow();
}

double ProcessorQuota() {
  double quota = 0, period = 0;
  // The file says "150000 100000" (quota and period in us), or "max 100000": no number, no limit.
  if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file) {
    file >> quota >> period;
  } else {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;  // -1: no limit
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

int AvailableThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int n = sched_getaffinity(0, sizeof(set), &set) == 0
              ? CPU_COUNT(&set)
              : static_cast<int>(std::thread::hardware_concurrency());
  if (const double quota = ProcessorQuota(); quota > 0)
    n = std::min(n, static_cast<int>(quota + 0.999));
  return std::max(1, n);
}

}  // namespace heddle

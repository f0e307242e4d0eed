#include "scheduler/run_admission.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/interrupts.h"
#include "scheduler/futex.h"
#include "scheduler/spin.h"

namespace heddle {
namespace {

// How long a server makes runs, in ns, before it yields the processor once, to the callers whose
// outputs are ready and which it has woken. With eight callers of a run of 13 us the 99th
// percentile of their waiting time was 3.3 times the median without this, and is 1.8 times it, with
// as many runs.
constexpr uint64_t kTurnNs = 50000;

// The host's functions may have to be called on this thread while it waits.
constexpr auto kBetweenLooks = std::chrono::milliseconds(10);

// A futex instead of a condition variable, which wakes a thread into a lock that its waker still
// holds: with eight callers of a run of 30 us that doubles the context switches. The word may be
// destroyed as soon as the value is stored. Waking its address is harmless then: a thread that
// sleeps there for another reason looks again.
void StoreAndWake(std::atomic<uint32_t>* word, uint32_t value) {
  word->store(value, std::memory_order_release);
  WakeOneAt(*word);
}

}  // namespace

RunAdmission::RunAdmission(int threads, int at_once)
    : threads_(threads),
      places_(threads == 1   ? at_once
              : at_once <= 1 ? threads
                             : std::min(threads, at_once)),
      share_(at_once == 1 ? threads : 1) {
  if (sched_getaffinity(0, sizeof processors_, &processors_) != 0) CPU_ZERO(&processors_);
}

RunAdmission::~RunAdmission() {
  for (const auto& server : servers_) StoreAndWake(&server->called, 1);
  for (const auto& server : servers_) server->thread.join();
}

bool RunAdmission::Run(FunctionRef<void(int)> run, const std::optional<Time>& until,
                       const std::stop_token& stop) {
  if (places_ == 0) {
    run(1);
    return true;
  }
  const Interrupts* const look = Interrupts::Current();
  Waiter me(run);
  int threads = Enter(&me);
  // Only before it is let in: afterwards the run itself looks for the stop.
  const auto take_out = [this, &me] {
    if (Remove(&me)) StoreAndWake(&me.state, Waiter::kStopped);
  };
  std::optional<std::stop_callback<decltype(take_out)>> on_stop;
  if (threads == 0 && stop.stop_possible()) on_stop.emplace(stop, take_out);
  while (threads == 0) {
    const uint32_t state = me.state.load(std::memory_order_acquire);
    if (state == Waiter::kStopped) return false;
    if (state == Waiter::kEnded) return true;
    if (state == Waiter::kCallers) {
      threads = share_;
      break;
    }
    std::optional<Time> wake = until;
    if (until && std::chrono::steady_clock::now() >= *until) {
      if (Remove(&me)) return false;
      wake.reset();  // it has been let in: another thread makes it, or is about to hand it back
    }
    if (look != nullptr) {
      if (!look->Look().ok() && Remove(&me)) return false;
      const Time next = std::chrono::steady_clock::now() + kBetweenLooks;
      wake = wake ? std::min(*wake, next) : next;
    }
    SleepAt(me.state, state, wake);
  }
  run(threads);
  Leave(threads, nullptr);
  return true;
}

// Returns the number of threads for the run if it may start at once; 0: it was put in the list.
int RunAdmission::Enter(Waiter* me) {
  MutexLock lock(mutex_);
  if (first_ == nullptr && taken_ == 0) return taken_ = threads_;
  if (first_ == nullptr && HasRoom()) {
    taken_ += share_;
    return share_;
  }
  (first_ == nullptr ? first_ : last_->next) = me;
  last_ = me;
  return 0;
}

bool RunAdmission::Remove(Waiter* waiter) {
  MutexLock lock(mutex_);
  Waiter* before = nullptr;
  Waiter* w = first_;
  for (; w != nullptr && w != waiter; w = w->next) before = w;
  if (w == nullptr) return false;
  (before == nullptr ? first_ : before->next) = w->next;
  if (last_ == w) last_ = before;
  return true;
}

// Gives back `threads` threads and admits waiting runs. `server`: the server that leaves, or
// nullptr; it gets its next run, or nullptr when there is none: then it is idle.
RunAdmission::Waiter* RunAdmission::Leave(int threads, Server* server) {
  Waiter* admitted = nullptr;
  int count = 0;
  {
    MutexLock lock(mutex_);
    taken_ = std::max(0, taken_ - threads);  // not below 0: a child process began anew with 0
    admitted = first_;
    count = Admit(server);
    if (server != nullptr) server->idle = count == 0;
  }
  if (server == nullptr || count == 0) {
    Call(admitted, count);
    return nullptr;
  }
  Call(admitted->next, count - 1);
  return admitted;
}

int RunAdmission::Admit(Server* server) {
  int count = 0;
  while (first_ != nullptr && HasRoom()) {
    Waiter* const w = first_;
    first_ = w->next;
    taken_ += share_;
    ++count;
    if (server != nullptr)
      w->server = server;
    else if (first_ != nullptr && (w->server = IdleServer()) != nullptr)
      w->server->job = w;
    server = nullptr;
  }
  if (first_ == nullptr) last_ = nullptr;
  return count;
}

// With one thread per executor, callers bring their own threads: there are no servers.
RunAdmission::Server* RunAdmission::IdleServer() {
  for (const auto& server : servers_)
    if (std::exchange(server->idle, false)) return server.get();
  if (threads_ == 1 || servers_.size() == static_cast<size_t>(threads_)) return nullptr;
  try {
    servers_.reserve(static_cast<size_t>(threads_));
    auto server = std::make_unique<Server>();
    server->idle = false;
    server->thread = std::thread(&RunAdmission::Serve, this, server.get());
    return servers_.emplace_back(std::move(server)).get();
  } catch (const std::exception&) {
    return nullptr;  // no thread or no memory to be had: the caller makes its run itself
  }
}

// For a child process, which has no other thread. The one it has may be inside a run that called
// fork; that run then leaves as the only one.
void RunAdmission::ForgetThreads() HEDDLE_NO_THREAD_SAFETY_ANALYSIS {
  taken_ = 0;
  first_ = last_ = nullptr;
  LeaveBehind(servers_);
}

void RunAdmission::Call(Waiter* first, int count) {
  for (; count > 0; --count) {
    Waiter* const next = first->next;
    if (first->server != nullptr)
      StoreAndWake(&first->server->called, 1);
    else
      StoreAndWake(&first->state, Waiter::kCallers);
    first = next;
  }
}

void RunAdmission::Serve(Server* server) {
  // A new thread inherits the affinity of its maker, and a caller may be bound to one processor.
  if (CPU_COUNT(&processors_) > 0) sched_setaffinity(0, sizeof processors_, &processors_);
  for (;;) {
    while (server->called.exchange(0, std::memory_order_acquire) == 0) SleepAt(server->called, 0);
    Waiter* job = std::exchange(server->job, nullptr);
    if (job == nullptr) return;
    uint64_t turn_ns = NowNs();
    while (job != nullptr) {
      job->run(share_);
      Waiter* const next = Leave(share_, server);
      // Before Leave, so the caller's next run may find nobody inside.
      StoreAndWake(&job->state, Waiter::kEnded);
      if (next != nullptr && NowNs() - turn_ns > kTurnNs) {
        sched_yield();
        turn_ns = NowNs();
      }
      job = next;
    }
  }
}

}  // namespace heddle
